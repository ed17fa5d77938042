"""Compiles linear layers with 4-bit weights as calls of one operator.

Inductor's own lowering makes the group size a constant that no weights file has; called by name,
the operator takes the number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from aoti_driver.torch_internals import patching

_OPERATOR: Any = torch.ops.aten._weight_int4pack_mm_for_cpu


@contextlib.contextmanager
def called_by_name() -> Iterator[None]:
    from torch._inductor import lowering

    mine = [_OPERATOR, *(getattr(_OPERATOR, name) for name in _OPERATOR.overloads())]
    with (
        patching.entries_kept("torch._inductor.lowering:lowerings", mine),
        patching.entries_kept("torch._inductor.lowering:fallbacks", mine),
    ):
        lowering.make_fallback(_OPERATOR)  # type: ignore[no-untyped-call]
        yield
