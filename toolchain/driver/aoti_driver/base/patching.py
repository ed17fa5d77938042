"""Replaces an attribute temporarily: torch has few hooks where the driver needs one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """``owner.name`` is ``value`` inside the block; ``owner`` must have the attribute already."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
