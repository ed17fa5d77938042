"""Finds and ends the child processes of this process, including those that a step leaves behind."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path

_ROUNDS = 1000  # rounds of ending processes that may start others


def children_of_this_process() -> set[int]:
    """The children of this process, including dead ones that nobody has waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    if not os.path.isdir("/proc"):
        return set()
    found = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            # The name may contain any characters. It is followed by the state and the parent.
            after_name = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2]
            if int(after_name.split()[1]) == os.getpid():
                found.add(int(name))
    return found


def end_children(but: Collection[int]) -> None:
    """Ends children of this process, and their own children, which become children of this
    process.
    """
    for _ in range(_ROUNDS):
        with contextlib.suppress(OSError):
            children = children_of_this_process().difference(but)
            if not children:
                return
            # A child's number stays in use until waitpid, so it can't refer to another process.
            for child in children:
                os.kill(child, signal.SIGKILL)
            for child in children:
                os.waitpid(child, 0)
