"""What a model calls of a tensor's methods and torch.export wouldn't record.

`x.data` is no operator, and tracing stops at it: `detach()` gives the same.

`contiguous()` does nothing for a tensor whose elements lie one after the other, so torch.export
leaves it out where they do so for the sample. For a size of 1 they can lie otherwise: `reshape()`
copies a transposed tensor of two rows, and not one of a single row. Then a `view()` fails.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class RecordedCalls(TorchFunctionMode):
    """contiguous: whether contiguous() copies where sizes vary, needed or not."""

    def __init__(self, contiguous: bool) -> None:
        super().__init__()
        self.contiguous = contiguous

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == torch.Tensor.data.__get__:  # type: ignore[attr-defined]
            return args[0].detach()
        result = func(*args, **(kwargs or {}))
        if not self.contiguous or func is not torch.Tensor.contiguous or result is not args[0]:
            return result
        return result.clone(memory_format=torch.contiguous_format) if _varies(result) else result


def _varies(tensor: torch.Tensor) -> bool:
    return any(isinstance(size, torch.SymInt) for size in tensor.shape)
