"""`grid_sample` of images with many channels: a loop over the channels of each point.

Inductor computes each number of the result by itself: from where the point lies, anew for each
channel, and from four pixels that it gathers. Here the places and weights of the four pixels are
computed once for a point, and then vectors of channels are read.

`replace` puts an operator into graphs, and `lowered` has Inductor write the loops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aoti_driver.inductor import convolution_epilogue, own_operators
from aoti_driver.program.graph_nodes import is_float32, value_of, write_anew
from aoti_driver.torch_internals import patching

_ATEN: Any = torch.ops.aten
_BILINEAR, _ZEROS, _BORDER = 0, 0, 1


def _sampled(x: Tensor, grid: Tensor, border: bool, align_corners: bool) -> Tensor:
    padding = _BORDER if border else _ZEROS
    result: Tensor = _ATEN.grid_sampler_2d.default(x, grid, _BILINEAR, padding, align_corners)
    return result


SAMPLE = own_operators.declare(
    "sample_grid(Tensor x, Tensor grid, bool border, bool align_corners) -> Tensor", _sampled
)


def replace(module: fx.GraphModule) -> None:
    """Puts the operator into the graph, whose values stay as they are."""
    graph, changed = module.graph, False
    for target in (_ATEN.grid_sampler.default, _ATEN.grid_sampler_2d.default):
        for node in graph.find_nodes(op="call_function", target=target):
            x, grid, interpolation, padding, align_corners = node.args
            if not (is_float32(x) and is_float32(grid) and interpolation == _BILINEAR):
                continue
            if padding not in (_ZEROS, _BORDER) or not _has_many_channels(value_of(x)):
                continue
            node.target = SAMPLE
            node.args = (x, grid, padding == _BORDER, align_corners)
            changed = True
    write_anew(module, changed)


def _has_many_channels(x: Tensor) -> bool:
    return x.dim() == 4 and statically_known_true(x.shape[1] >= convolution_epilogue.MANY_CHANNELS)


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor write the loops."""
    with patching.entries_kept("torch._inductor.lowering:lowerings", [SAMPLE]) as lowerings:
        lowerings[SAMPLE] = _sample
        yield


def _sample(x: Any, grid: Any, border: bool, align_corners: bool) -> Any:
    """x: float32[n, c, h, w], grid: float32[n, rows, columns, 2] to float32[n, c, rows, columns]"""
    from torch._inductor import ir, lowering
    from torch._inductor.virtualized import ops

    _, channels, *sizes = x.get_size()
    points = grid.get_size()[:3]
    x = convolution_epilogue.channels_last(x)
    grid.realize()
    load_grid = grid.make_loader()

    def for_points(inner: Callable[[Sequence[Any]], Any], dtype: torch.dtype) -> Any:
        """Memory with a number for each point, and what loads it."""
        numbers = ir.Pointwise.create(
            device=grid.get_device(), dtype=dtype, inner_fn=inner, ranges=points
        )
        numbers.realize()
        return numbers.make_loader()

    def pixel(index: Sequence[Any], dim: int, upper: int) -> tuple[Any, Any, Any]:
        """The lower or upper neighbour along a dim, whether it is in the image, and its weight."""
        size = ops.index_expr(sizes[dim], torch.float32)
        at = load_grid([*index, 1 - dim])  # x comes first
        place = _place(at, size, border, align_corners)
        lower = ops.floor(place)
        part = place - lower
        neighbour = lower + _number(upper)
        inside = ops.and_(ops.ge(neighbour, _number(0)), ops.lt(neighbour, size))
        return neighbour, inside, part if upper else _number(1) - part

    def index_of(dim: int, upper: int) -> Any:
        def inner(index: Sequence[Any]) -> Any:
            neighbour, inside, _ = pixel(index, dim, upper)
            return ops.to_dtype(ops.where(inside, neighbour, _number(0)), torch.int64)

        return for_points(inner, torch.int64)

    def weight_of(upper: tuple[int, int]) -> Any:
        def inner(index: Sequence[Any]) -> Any:
            (_, in_rows, row), (_, in_columns, column) = (
                pixel(index, dim, upper[dim]) for dim in range(2)
            )
            weight = row * column
            # 0 outside, but of a place that is not a number, or infinite, no weight is one.
            return ops.where(ops.and_(in_rows, in_columns), weight, weight * _number(0))

        return for_points(inner, torch.float32)

    indices = [[index_of(dim, upper) for upper in range(2)] for dim in range(2)]
    corners = [(row, column) for row in range(2) for column in range(2)]
    weights = [weight_of(corner) for corner in corners]
    load = x.make_loader()

    def inner(index: Sequence[Any]) -> Any:
        *point, channel = index
        places = [
            [ops.indirect_indexing(found(point), size, check=False) for found in both]
            for both, size in zip(indices, sizes, strict=True)
        ]
        result = _number(0)
        for (row, column), weight in zip(corners, weights, strict=True):
            value = load([point[0], channel, places[0][row], places[1][column]])
            result = result + value * weight(point)
        return result

    result: Any = ir.Pointwise.create(
        device=x.get_device(), dtype=torch.float32, inner_fn=inner, ranges=[*points, channels]
    )
    return lowering.permute(ir.ExternKernel.require_contiguous(result), [0, 3, 1, 2])


def _number(value: float) -> Any:
    from torch._inductor.virtualized import ops

    return ops.constant(value, torch.float32)


def _place(at: Any, size: Any, border: bool, align_corners: bool) -> Any:
    """Where -1..1 lies in an image, in pixels. The arithmetic is that of PyTorch."""
    from torch._inductor.virtualized import ops

    last = size - _number(1)
    if align_corners:
        place = (at + _number(1)) * _number(0.5) * last
    else:
        place = ((at + _number(1)) * size - _number(1)) * _number(0.5)
    if border:  # what is not a number is at the beginning
        place = ops.where(ops.gt(place, _number(0)), place, _number(0))
        place = ops.where(ops.lt(place, last), place, last)
    return place
