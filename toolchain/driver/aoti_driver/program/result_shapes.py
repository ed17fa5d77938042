"""Tells torch the shapes of the results of operators that it can only run to find them."""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.library import Library

_LIBRARY = Library("aten", "IMPL", "Meta")  # type: ignore[no-untyped-call]


@functools.cache
def declare() -> None:
    """Lets them be exported for sizes that vary, and be compiled at all."""
    _LIBRARY.impl("geqrf", _geqrf)  # type: ignore[no-untyped-call]


def _geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    if a.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    rows, columns = a.shape[-2:]
    kept = a.new_empty((*a.shape[:-2], columns, rows)).mT
    count = torch.sym_min(rows, columns)  # type: ignore[no-untyped-call]
    return kept, a.new_empty((*a.shape[:-2], count))
