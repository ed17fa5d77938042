"""What a user can do wrong, said in the user's words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DriverError(Exception):
    """A mistake that the user can put right: printed as plain text, without a traceback."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean "x"?)`` for the closest known name, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f' (did you mean "{close[0]}"?)' if close else ""


def listed(names: Iterable[str], empty: str = "none") -> str:
    """Names for the end of a sentence, in their order."""
    return ", ".join(names) or empty


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
