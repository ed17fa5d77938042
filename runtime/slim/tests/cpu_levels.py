"""The levels of kernels in floating point, by number: runtime/slim/cpu chooses among them."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator

import harness
import torch


def known() -> list[int]:
    """Those of this machine."""
    if platform.machine() != "x86_64":
        return [3]
    levels = {"AVX512": [0, 1, 2], "AVX2": [0, 1]}
    return levels.get(torch.backends.cpu.get_cpu_capability(), [0])


@contextlib.contextmanager
def chosen(slim: harness.Slim, level: int) -> Iterator[int]:
    slim.library.aoti_slim_set_cpu_level(level)
    try:
        yield level
    finally:
        slim.library.aoti_slim_set_cpu_level(-1)
