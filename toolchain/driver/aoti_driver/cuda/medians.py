"""Medians and modes by sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _kept(results: tuple[Tensor, Tensor], dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values, places = results
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of two; NaN if there is one."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, order = torch.sort(x, dim=dim, stable=True)
    middle = (x.shape[dim] - 1) // 2
    value, place = values.narrow(dim, middle, 1), order.narrow(dim, middle, 1)
    if x.is_floating_point():
        last = x.shape[dim] - 1
        broken = values.narrow(dim, last, 1).isnan()
        first = x.isnan().to(torch.int32).argmax(dim, keepdim=True)
        value = torch.where(broken, float("nan"), value)
        place = torch.where(broken, first, place)
    return _kept((value, place), dim, keepdim)


def _nanmedian(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of two, of those that are no NaN; NaN if there are none."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, order = torch.sort(x, dim=dim, stable=True)
    if x.is_floating_point():
        numbers = x.isnan().logical_not().sum(dim, keepdim=True)
        middle = ((numbers - 1) // 2).clamp_min(0)
        results = values.gather(dim, middle), order.gather(dim, middle)
    else:
        at = (x.shape[dim] - 1) // 2
        results = values.narrow(dim, at, 1), order.narrow(dim, at, 1)
    return _kept(results, dim, keepdim)


def _of_all(median: Callable[..., tuple[Tensor, Tensor]]) -> Callable[[Tensor], Tensor]:
    return lambda x: median(x.reshape(-1), 0)[0]


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest one of several, where it occurs last."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, order = torch.sort(x, dim=dim, stable=True)
    shape = [1] * x.dim()
    shape[dim] = -1
    places = torch.arange(x.shape[dim], device=x.device).view(shape).expand(x.shape)
    others = values.gather(dim, (places - 1).clamp_min(0))
    begins = torch.where((places == 0) | (values != others), places, 0)
    run = places - torch.cummax(begins, dim).values
    last = run.argmax(dim, keepdim=True)
    return _kept((values.gather(dim, last), order.gather(dim, last)), dim, keepdim)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.median.dim": _median,
    "aten.median.default": _of_all(_median),
    "aten.nanmedian.dim": _nanmedian,
    "aten.nanmedian.default": _of_all(_nanmedian),
    "aten.mode.default": _mode,
}
