"""Notices the start of processes: whoever compiles something starts a compiler."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Iterator

_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.system")

_heard: list[str] = []
sys.addaudithook(lambda event, _: _heard.append(event) if event in _STARTS else None)


@contextlib.contextmanager
def started() -> Iterator[list[str]]:
    """A list that is complete at the end of the block: what Python started, and what C++ did."""
    found: list[str] = []
    _heard.clear()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield found
    found += _heard
    if resource.getrusage(resource.RUSAGE_CHILDREN) != before:
        found.append("a child process")
