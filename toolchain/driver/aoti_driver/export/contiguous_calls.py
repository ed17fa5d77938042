"""`contiguous()` stays in the program where sizes vary.

It does nothing for a tensor whose elements lie one after the other, so torch.export leaves it out
where they do so for the sample. For a size of 1 they can lie otherwise: `reshape()` copies a
transposed tensor of two rows, and not one of a single row. Then a `view()` behind it fails.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def kept(wanted: bool) -> contextlib.AbstractContextManager[Any]:
    return _Copied() if wanted else contextlib.nullcontext()


class _Copied(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.Tensor.contiguous and result is args[0] and _varies(result):
            return result.clone(memory_format=torch.contiguous_format)
        return result


def _varies(tensor: torch.Tensor) -> bool:
    return any(isinstance(size, torch.SymInt) for size in tensor.shape)
