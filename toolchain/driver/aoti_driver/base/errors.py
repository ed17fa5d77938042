"""Mistakes that users can make, with messages in terms of their BUILD files."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator


class DriverError(Exception):
    """A mistake that the user can correct: printed as plain text, without a traceback."""


def chain(
    error: BaseException, into_context: Callable[[BaseException], bool] = lambda _: True
) -> Iterator[BaseException]:
    """The error, followed by the chain of its causes.

    If an error has no cause, it may have been raised while another one was handled, which is its
    context. into_context: whether the context counts as the cause of the given error.
    """
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        yield current
        seen.add(id(current))
        current = current.__cause__ or (current.__context__ if into_context(current) else None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean "x"?)`` for the closest known name; empty if none is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f' (did you mean "{close[0]}"?)' if close else ""


def listed(names: Iterable[str], empty: str = "none") -> str:
    """Names for the end of a sentence, in their order."""
    return ", ".join(names) or empty


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
