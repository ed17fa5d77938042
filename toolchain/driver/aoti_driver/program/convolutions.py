"""Makes torch predict the same layout for a convolution's result on every build machine.

Where oneDNN computes a convolution of three dims, the result is channels last if the input or the
weight is; PyTorch's own code returns a contiguous result. For bfloat16 and float16, torch lets
oneDNN do it if the CPU has instructions that oneDNN needs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from aoti_driver.torch_internals import patching

_BACKEND = "torch._C:_select_conv_backend"
_Backend: Any = torch._C._ConvBackend  # type: ignore[attr-defined]
_EMPTY = (_Backend.Empty, _Backend.MkldnnEmpty)


@contextlib.contextmanager
def layouts_of_every_host() -> Iterator[None]:
    """The result of such a convolution is contiguous inside the block.

    Inductor then gives it a contiguous input and weight. For these the result is contiguous on
    every CPU: with oneDNN, with PyTorch's own code, and with the slim runtime.
    """
    select = patching.original(_BACKEND)

    def select_for_all(x: Any, weight: Any, **others: Any) -> Any:
        chosen = select(x, weight, **others)
        half = x.dtype in (torch.bfloat16, torch.float16)
        if weight.ndim == 5 and half and x.device.type == "cpu" and chosen not in _EMPTY:
            return _Backend.Slow3d
        return chosen

    # It holds predictions that were made outside of the block.
    FakeTensorMode.cache_clear()
    with patching.replaced({_BACKEND: select_for_all}):
        yield
