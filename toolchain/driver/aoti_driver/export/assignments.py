"""Assignments at an index that varies from call to call, as in ``cache[:, i] = key``.

``torch.export`` writes reading at such an index, a number or a tensor of one integer, with
``select``. An assignment makes it ask for the index's value, which it doesn't know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from aoti_driver.torch_internals import patching

_PLACE = "torch._export.non_strict_utils:_NonStrictTorchFunctionHandler._override"
# Not uint8, which is a mask.
_INTEGERS = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})


@contextlib.contextmanager
def at_varying_indices() -> Iterator[None]:
    """Tracing writes them as reading, and an assignment to what was read."""
    override = patching.original(_PLACE)
    read = torch.Tensor.__getitem__

    def with_assignments(handler: Any, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if func is torch.Tensor.__setitem__ and _varies(args[1]):
            tensor, index, value = args
            select, selected, _ = override(handler, read, (tensor, index), {})
            # Otherwise other indices are tensors, and the result of reading is no view.
            if select is not read:

                def assign() -> None:
                    select(*selected)[...] = value

                return assign, (), {}
        return override(handler, func, args, kwargs)

    with patching.replaced({_PLACE: with_assignments}):
        yield


def _varies(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(part, torch.SymInt)
        or (isinstance(part, torch.Tensor) and part.dim() == 0 and part.dtype in _INTEGERS)
        for part in parts
    )
