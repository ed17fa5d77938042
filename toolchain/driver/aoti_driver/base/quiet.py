"""Keeps torch's logs, and what a model prints while it is traced, out of the action's output.

Exceptions contain the important part of these logs; the rest are graph dumps with temporary paths.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Hides logs and warnings inside the block: the packages that a model imports emit them in
    every build.

    What the model prints is still shown.
    """
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Hides logs, warnings and prints inside the block."""
    with (
        without_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        yield
