"""Delays a request to end the process (SIGTERM) while something must not be left unfinished.

The handler waits; the signal is not blocked, because another thread could receive a blocked signal.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

_held = 0
_asked: int | None = None


def exit_on_sigterm() -> None:
    """From now on SIGTERM raises SystemExit in the main thread, so that ``finally`` blocks run."""
    signal.signal(signal.SIGTERM, _handle)


def hold() -> None:
    """Delays SIGTERM until :func:`release` was called as often as this function."""
    global _held
    _held += 1


def release() -> None:
    """Ends one :func:`hold`; raises SystemExit if a SIGTERM has arrived meanwhile."""
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
