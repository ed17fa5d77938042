"""What every part of the bootstrap shares: its error, and its messages."""

from __future__ import annotations

import sys

VERSION = "7.7.1"  # of the Bazel that is prepared


class AirgapError(Exception):
    """Something the user can act on; the text says what."""


def note(text: str) -> None:
    """Tells the user something on stderr: stdout belongs to Bazel."""
    print(f"bazelw: {text}", file=sys.stderr, flush=True)
