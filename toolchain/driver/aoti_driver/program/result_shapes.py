"""Tells torch the shapes of the results of operators that it can only run to find them, or not even
that.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.library import Library

from aoti_driver.torch_internals import patching

_LIBRARY = Library("aten", "IMPL", "Meta")  # type: ignore[no-untyped-call]


@functools.cache
def declare() -> None:
    """Lets them be exported for sizes that vary, and be compiled at all."""
    _LIBRARY.impl("geqrf", _geqrf)  # type: ignore[no-untyped-call]
    patching.add_entry("torch._decomp:decomposition_table", torch.ops.aten.std_mean.dim, _std_mean)


def _geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    if a.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    rows, columns = a.shape[-2:]
    kept = a.new_empty((*a.shape[:-2], columns, rows)).mT
    count = torch.sym_min(rows, columns)  # type: ignore[no-untyped-call]
    return kept, a.new_empty((*a.shape[:-2], count))


def _std_mean(
    x: Tensor, dim: list[int] | None, unbiased: bool = True, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return torch.std_mean(x, dim, correction=int(unbiased), keepdim=keepdim)
