"""Compiles linear layers with 4-bit weights as calls of one operator.

Inductor's own lowering makes the group size a constant that no weights file has; called by name,
the operator takes the number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from aoti_driver.base.patching import replaced

_OPERATOR: Any = torch.ops.aten._weight_int4pack_mm_for_cpu


@contextlib.contextmanager
def called_by_name() -> Iterator[None]:
    from torch._inductor import lowering as torch_lowering
    from torch._inductor import quantized_lowerings

    lowering: Any = torch_lowering
    # Inductor registers its lowerings at their first use: this does so now, so that it can't happen
    # later.
    quantized_lowerings.register_woq_mm_ops()
    mine = [_OPERATOR, *(getattr(_OPERATOR, name) for name in _OPERATOR.overloads())]
    before = {op: lowering.lowerings.pop(op) for op in mine if op in lowering.lowerings}
    fallbacks = set(lowering.fallbacks)
    try:
        with replaced(quantized_lowerings, "register_woq_mm_ops", lambda: None):
            lowering.make_fallback(_OPERATOR)
            yield
    finally:
        for op in mine:
            lowering.lowerings.pop(op, None)
        lowering.lowerings.update(before)
        lowering.fallbacks.intersection_update(fallbacks)
