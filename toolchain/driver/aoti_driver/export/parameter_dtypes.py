"""Stores parameters and buffers of dtypes that weights files lack as other dtypes.

The bits are unchanged: float8 is stored as uint8, uint16 as int16, complex128 as pairs of float64.
The module, and so the program, views them as their own dtype before any other use.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from aoti_driver.contract.dtypes import DTYPES

# Maps a dtype to the dtype of the same size that it is stored as.
_STORED_AS = {
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}


class _Bits(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def forward(self, stored: Tensor) -> Tensor:
        return stored.view(self._dtype)

    # A list, because a single tensor may not change the dtype.
    def right_inverse(self, value: Tensor) -> list[Tensor]:
        return [value.view(_STORED_AS[self._dtype])]


class _Pairs(nn.Module):
    def forward(self, stored: Tensor) -> Tensor:
        return torch.view_as_complex(stored)

    def right_inverse(self, value: Tensor) -> list[Tensor]:
        return [torch.view_as_real(value.resolve_conj())]


def store_as_known(module: nn.Module) -> None:
    """Does nothing for a module whose parameters and buffers all have dtypes of the manifest."""
    for owner in list(module.modules()):
        tensors = [*owner.named_parameters(recurse=False), *owner.named_buffers(recurse=False)]
        for name, tensor in tensors:
            how = _how(tensor.dtype)
            if how is not None and str(tensor.dtype).removeprefix("torch.") not in DTYPES:
                tensor.requires_grad_(False)
                parametrize.register_parametrization(owner, name, how, unsafe=True)


def _how(dtype: torch.dtype) -> nn.Module | None:
    if dtype == torch.complex128:
        return _Pairs()
    return _Bits(dtype) if dtype in _STORED_AS else None
