"""Adaptive pools and antialiased resampling: what windows whose sizes differ have in common.

A window of each output is a row of indices, all rows of one length; those behind the window's end
count for nothing. Dimensions are done one after the other where the function allows it. Inductor
has kernels for small windows of pools alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from aoti_driver.cuda.wide import wide

_aten: Any = torch.ops.aten
# Inductor writes out pools whose windows are not larger.
_WRITTEN_OUT = 25


def _gathered(x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """Replaces a dimension by those of the indices, which are known to be in range."""
    result: Tensor = _aten._unsafe_index(x, [*[None] * (dim % x.dim()), indices])
    return result


def _pool_windows(size: Any, outputs: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Indices and whether they are in the window: int64 and bool [outputs, longest window]."""
    longest = (size + outputs - 1) // outputs + 1
    number = torch.arange(outputs, device=device).unsqueeze(-1)
    first = number * size // outputs
    end = ((number + 1) * size + outputs - 1) // outputs
    indices = first + torch.arange(longest, device=device)
    return indices.clamp(max=size - 1), indices < end


def _written_out(x: Tensor, outputs: Sequence[int]) -> bool:
    sizes = x.shape[-len(outputs) :]
    if len(outputs) != 2 or not all(isinstance(size, int) for size in sizes):
        return False
    windows = [-(-size // count) for size, count in zip(sizes, outputs, strict=True)]
    return math.prod(window + 1 for window in windows) <= _WRITTEN_OUT


def _mean_pool(x: Tensor, outputs: Sequence[int]) -> Any:
    if _written_out(x, outputs):
        return NotImplemented
    result = wide(x)
    for dim, count in enumerate(reversed(outputs), 1):
        indices, inside = _pool_windows(x.shape[-dim], count, x.device)
        shape = (*inside.shape, *[1] * (dim - 1))
        numbers = _gathered(result, -dim, indices)
        numbers = torch.where(inside.view(shape), numbers, 0)
        lengths = inside.sum(-1, dtype=result.dtype).view(count, *[1] * (dim - 1))
        result = numbers.sum(-dim) / lengths
    return result.to(x.dtype)


def _max_pool(x: Tensor, outputs: Sequence[int]) -> Any:
    if _written_out(x, outputs):
        return NotImplemented
    lowest = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    # [..., output, window, output, window, ..] -> [..., outputs, windows]
    numbers, place = x, torch.zeros((), dtype=torch.int64, device=x.device)
    dims = len(outputs)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for dim in range(dims):
        size = x.shape[dim - dims]
        indices, there = _pool_windows(size, outputs[dim], x.device)
        numbers = _gathered(numbers, dim - dims, indices)
        behind = [1, 1] * (dims - 1 - dim)
        place = place * size + indices.view(*indices.shape, *behind)
        inside = inside & there.view(*there.shape, *behind)
    numbers = torch.where(inside, numbers, lowest)
    order = [*range(0, 2 * dims, 2), *range(1, 2 * dims, 2)]
    before = numbers.dim() - 2 * dims
    numbers = numbers.permute(*range(before), *(before + dim for dim in order)).flatten(-dims)
    places = place.permute(order).flatten(-dims)
    found = numbers.argmax(-1, keepdim=True)
    maxima = numbers.gather(-1, found).squeeze(-1)
    places = places.expand(numbers.shape).gather(-1, found).squeeze(-1)
    return maxima, places


def _hat(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp_min(0)


def _cubic(x: Tensor) -> Tensor:
    """Keys's kernel with a = -0.5, as PyTorch's antialiased filter has it."""
    a = -0.5
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return torch.where(x < 1, near, torch.where(x < 2, far, 0))


def _resampled(
    x: Tensor,
    dim: int,
    count: Any,
    align_corners: bool,
    factor: float | None,
    radius: int,
    kernel: Callable[[Tensor], Tensor],
) -> Tensor:
    size = x.shape[dim]
    # No branches on sizes that vary: the code would be right for those on the sample's side alone.
    if align_corners:
        gaps = count - 1
        steps, one = torch.sym_max(gaps, 1), torch.sym_min(gaps, 1)  # type: ignore[no-untyped-call]
        scale = (size - 1) / steps * one
    else:
        scale = 1 / factor if factor else size / count
    stretch = torch.sym_max(scale, 1.0)  # type: ignore[no-untyped-call]
    support = radius * stretch
    longest = math.ceil(support) * 2 + 1
    # As PyTorch, which counts them in the dtype of the sums.
    center = scale * (torch.arange(count, device=x.device).to(x.dtype) + 0.5)
    first = (center - support + 0.5).to(torch.int64).clamp_min(0)
    end = (center + support + 0.5).to(torch.int64).clamp_max(size)
    indices = first.unsqueeze(-1) + torch.arange(longest, device=x.device)
    distances = (indices.to(x.dtype) - center.unsqueeze(-1) + 0.5) / stretch
    weights = torch.where(indices < end.unsqueeze(-1), kernel(distances), 0)
    weights = weights / weights.sum(-1, keepdim=True)
    behind = [1] * (-dim - 1)
    numbers = _gathered(x, dim, indices.clamp(max=size - 1))
    return (numbers * weights.view(*weights.shape, *behind)).sum(dim)


def _antialiased(radius: int, kernel: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def resample(
        x: Tensor,
        output_size: Sequence[Any],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Tensor:
        result = wide(x)
        for dim, count, factor in ((-1, output_size[1], scales_w), (-2, output_size[0], scales_h)):
            result = _resampled(result, dim, count, align_corners, factor, radius, kernel)
        return result.to(x.dtype)

    return resample


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._adaptive_avg_pool2d.default": _mean_pool,
    "aten._adaptive_avg_pool3d.default": _mean_pool,
    "aten.adaptive_max_pool2d.default": _max_pool,
    "aten.adaptive_max_pool3d.default": _max_pool,
    "aten._upsample_bicubic2d_aa.default": _antialiased(2, _cubic),
    "aten._upsample_bilinear2d_aa.default": _antialiased(1, _hat),
}
