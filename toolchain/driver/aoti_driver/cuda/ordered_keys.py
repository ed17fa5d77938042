"""Integers in the order of floats: kernels sort and compare them without a special case."""

from __future__ import annotations

import torch
from torch import Tensor


def ordered(x: Tensor) -> Tensor:
    """int32 or int64 numbers in the order in which PyTorch sorts x: NaN is the largest, and zeros
    of both signs are equal.
    """
    if not x.is_floating_point():
        return x if x.dtype in (torch.int32, torch.int64) else x.to(torch.int32)
    x = x if x.dtype == torch.float64 else x.float()
    x = torch.where(x == 0, 0.0, torch.where(x.isnan(), float("nan"), x))
    return _flipped(x.view(torch.int64 if x.dtype == torch.float64 else torch.int32))


def numbers(keys: Tensor, dtype: torch.dtype) -> Tensor:
    """The numbers of the dtype whose keys these are."""
    if not dtype.is_floating_point:
        return keys.to(dtype)
    wide = torch.float64 if keys.dtype == torch.int64 else torch.float32
    return _flipped(keys).view(wide).to(dtype)


def lowest(keys: Tensor) -> int:
    return torch.iinfo(keys.dtype).min


def highest(keys: Tensor) -> int:
    return torch.iinfo(keys.dtype).max


def _flipped(bits: Tensor) -> Tensor:
    """The bits of a negative float grow with its absolute value."""
    return torch.where(bits < 0, bits ^ torch.iinfo(bits.dtype).max, bits)
