"""Keeps torch's logs, and what a model prints while it is traced, out of the action's output.

What matters in them is in the exception too; the rest is graph dumps with temporary paths.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Nobody logs or warns inside: the packages that a model imports do so in every build.

    What the model prints is shown.
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
    """Neither logs nor warnings nor prints."""
    with (
        without_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        yield
