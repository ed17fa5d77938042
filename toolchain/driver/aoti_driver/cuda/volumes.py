"""Samples of volumes between their points."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from aoti_driver.cuda.wide import wide

_aten: Any = torch.ops.aten
_LINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER, _REFLECTION = range(3)


def _reflected(x: Tensor, twice_low: int, twice_high: Any) -> Tensor:
    # All points of a dimension of one point are there, whatever the span. No branch on its size,
    # which may vary.
    low = twice_low / 2
    span = torch.sym_max(twice_high - twice_low, 1) / 2  # type: ignore[no-untyped-call]
    x = (x - low).abs()
    extra = torch.fmod(x, span)
    flips = (x / span).floor()
    return torch.where(torch.fmod(flips, 2) == 0, extra + low, span - extra + low)


def _point(at: Tensor, size: Any, padding: int, align_corners: bool) -> Tensor:
    """Where in a dimension: a coordinate from -1 to 1 as one from 0 to size - 1."""
    if align_corners:
        point, ends = (at + 1) / 2 * (size - 1), (0, 2 * (size - 1))
    else:
        point, ends = ((at + 1) * size - 1) / 2, (-1, 2 * size - 1)
    if padding == _REFLECTION:
        point = _reflected(point, *ends)
    inside: Tensor = point if padding == _ZEROS else point.clamp(0, size - 1)
    return inside


def _sampled(x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Any:
    if interpolation not in (_LINEAR, _NEAREST):
        return NotImplemented
    volume = wide(x)
    at = grid.to(volume.dtype).unbind(-1)
    # The grid's last dimension is x, y, z; the volume's are z, y, x.
    sizes = x.shape[2:]
    points = [
        _point(at[2 - dim], sizes[dim], padding, align_corners).unsqueeze(1) for dim in range(3)
    ]
    batch = torch.arange(x.shape[0], device=x.device).view(-1, 1, 1, 1, 1)
    channel = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1, 1)

    def value(corner: list[Tensor]) -> Tensor:
        inside = torch.ones_like(corner[0], dtype=torch.bool)
        for place, size in zip(corner, sizes, strict=True):
            inside = inside & (place >= 0) & (place < size)
        # No index from NaN, which is nowhere.
        indices = [torch.where(inside, place, 0).to(torch.int64) for place in corner]
        return torch.where(inside, _aten._unsafe_index(volume, [batch, channel, *indices]), 0)

    if interpolation == _NEAREST:
        return value([point.round() for point in points]).to(x.dtype)
    low = [point.floor() for point in points]
    result: Any = 0
    for upper in product((False, True), repeat=3):
        corner, weight = [], torch.ones_like(points[0])
        for is_upper, first, point in zip(upper, low, points, strict=True):
            corner.append(first + 1 if is_upper else first)
            weight = weight * (point - first if is_upper else first + 1 - point)
        result = result + value(corner) * weight
    return result.to(x.dtype)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {"aten.grid_sampler_3d.default": _sampled}
