"""A request to end the process (SIGTERM), which waits while something must not be left half done.

The handler itself waits, not the signal: another thread of the process could take a blocked signal.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

_held = 0
_asked: int | None = None


def exit_on_sigterm() -> None:
    """From now on SIGTERM raises SystemExit in the main thread, so that ``finally`` is obeyed."""
    signal.signal(signal.SIGTERM, _handle)


def hold() -> None:
    """SIGTERM waits until as many calls of :func:`release` were made."""
    global _held
    _held += 1


def release() -> None:
    """Raises SystemExit if a SIGTERM has come meanwhile."""
    global _held, _asked
    _held -= 1
    if _held == 0 and _asked is not None:
        number, _asked = _asked, None
        sys.exit(128 + number)


def _handle(number: int, _: FrameType | None) -> None:
    global _asked
    if _held:
        _asked = number
    else:
        sys.exit(128 + number)
