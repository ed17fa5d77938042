"""Loops for images that become larger: bilinear interpolation and `pixel_shuffle`.

Inductor computes each pixel of the result by itself: an interpolation from four pixels, at places
that it calculates anew for each channel, and a shuffled pixel from one, found by divisions. Here an
interpolation is two passes, first along the rows of the image and then across them, of which the
second reads memory in its order; and a shuffle is a loop over the parts of each pixel.

`replace` puts an operator for each into graphs, and `lowered` has Inductor write the loops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aoti_driver.inductor import convolution_epilogue, own_operators
from aoti_driver.program.graph_nodes import write_anew
from aoti_driver.torch_internals import patching

_ATEN: Any = torch.ops.aten


def _interpolated(
    x: Tensor, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
) -> Tensor:
    result: Tensor = _ATEN.upsample_bilinear2d.vec(x, size, align_corners, factors)
    return result


def _shuffled(x: Tensor, factor: int) -> Tensor:
    result: Tensor = _ATEN.pixel_shuffle.default(x, factor)
    return result


ENLARGE = own_operators.declare(
    "enlarge(Tensor x, SymInt[]? size, bool align_corners, float[]? factors) -> Tensor",
    _interpolated,
)
SHUFFLE = own_operators.declare("shuffle_pixels(Tensor x, int factor) -> Tensor", _shuffled)


def replace(module: fx.GraphModule) -> None:
    """Puts the operators into the graph, whose values stay as they are."""
    graph, changed = module.graph, False
    for node in graph.find_nodes(op="call_function", target=_ATEN.upsample_bilinear2d.vec):
        if _enlarges(node):
            node.target, changed = ENLARGE, True
    for node in graph.find_nodes(op="call_function", target=_ATEN.pixel_shuffle.default):
        if _value(node.args[0]).dim() == 4 and node.args[1] > 1:
            node.target, changed = SHUFFLE, True
    write_anew(module, changed)


def _value(node: Any) -> Tensor:
    value: Tensor = node.meta["val"]
    return value


def _enlarges(node: fx.Node) -> bool:
    """Whether the result is known not to be smaller than the image: otherwise the first pass would
    compute much that the second one does not read.
    """
    before = _value(node.args[0])
    factors = node.args[3] if len(node.args) > 3 else node.kwargs.get("scale_factors")
    if node.kwargs or before.dtype != torch.float32:
        return False
    if isinstance(factors, list | tuple):
        return all(isinstance(factor, float) and factor >= 1 for factor in factors)
    after = _value(node)
    return all(statically_known_true(after.shape[d] >= before.shape[d]) for d in (2, 3))


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor write the loops."""
    with patching.entries_kept(
        "torch._inductor.lowering:lowerings", [ENLARGE, SHUFFLE]
    ) as lowerings:
        lowerings[ENLARGE] = _enlarge
        lowerings[SHUFFLE] = _shuffle
        yield


def _enlarge(x: Any, size: Any, align_corners: bool, factors: Any) -> Any:
    """x: float32[n, c, h, w]"""
    from torch._inductor import ir, utils
    from torch._inductor.virtualized import V

    current = V.graph.current_node
    height, width = utils.convert_shape_to_inductor(current.meta["val"].shape)[2:]
    x.realize()
    rows = _resized(x, 3, width, align_corners, factors and factors[1])
    # The second pass goes along the dim that is contiguous in its result.
    if not any(user.op == "output" for user in current.users) and _are_many(x.get_size()[1]):
        rows = convolution_epilogue.channels_last(rows)
    else:
        rows = ir.ExternKernel.require_stride_order(rows, [3, 2, 1, 0])
    return _resized(rows, 2, height, align_corners, factors and factors[0])


def _are_many(channels: Any) -> bool:
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_geq(channels, convolution_epilogue.MANY_CHANNELS))


def _resized(x: Any, dim: int, size: Any, align_corners: bool, factor: float | None) -> Any:
    """x, interpolated along one dim. The arithmetic is that of PyTorch, in float32."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V, ops

    ranges = [*x.get_size()]
    before, ranges[dim] = ranges[dim], size
    if V.graph.sizevars.statically_known_equals(before, size):
        return x
    load = x.make_loader()
    ratio = _ratio(before, size, align_corners, factor)

    def number(value: float) -> Any:
        return ops.constant(value, torch.float32)

    def inner(index: Sequence[Any]) -> Any:
        place = ops.index_expr(index[dim], torch.float32)
        if align_corners:
            place = place * ratio()
        else:
            place = (place + number(0.5)) * ratio() - number(0.5)
            place = ops.maximum(place, number(0))
        last = ops.index_expr(before - 1, torch.int64)
        first = ops.minimum(ops.to_dtype(place, torch.int64), last)
        second = ops.minimum(first + ops.constant(1, torch.int64), last)
        part = place - ops.to_dtype(first, torch.float32)
        part = ops.minimum(ops.maximum(part, number(0)), number(1))

        def at(where: Any) -> Any:
            found = ops.indirect_indexing(where, before, check=False)
            return load([*index[:dim], found, *index[dim + 1 :]])

        value = at(first)
        return value + (at(second) - value) * part

    return ir.Pointwise.create(
        device=x.get_device(), dtype=torch.float32, inner_fn=inner, ranges=ranges
    )


def _ratio(before: Any, after: Any, align_corners: bool, factor: float | None) -> Callable[[], Any]:
    """Writes the distance of two neighbours of the result, in pixels of the image."""
    from torch._inductor.virtualized import ops

    if factor is not None and not align_corners:
        return lambda: ops.constant(1 / factor, torch.float32)
    if align_corners:  # a result of one pixel has the first one
        import sympy

        before, after = before - 1, sympy.Max(after - 1, 1)

    def write() -> Any:
        try:
            return ops.constant(int(before) / int(after), torch.float32)
        except TypeError:  # sizes that vary
            return ops.truediv(
                ops.index_expr(before, torch.float32), ops.index_expr(after, torch.float32)
            )

    return write


def _shuffle(x: Any, factor: int) -> Any:
    """x: [n, c * factor * factor, h, w]"""
    from torch._inductor import ir, lowering

    n, channels, height, width = x.get_size()
    channels = channels // (factor * factor)
    x.realize()
    load = x.make_loader()
    many = _are_many(channels)

    def inner(index: Sequence[Any]) -> Any:
        if many:
            image, row, below, column, right, channel = index
        else:
            image, channel, row, below, column, right = index
        return load([image, (channel * factor + below) * factor + right, row, column])

    pixels: list[Any] = [height, factor, width, factor]
    ranges = [n, *pixels, channels] if many else [n, channels, *pixels]
    result: Any = ir.Pointwise.create(
        device=x.get_device(), dtype=x.get_dtype(), inner_fn=inner, ranges=ranges
    )
    result = ir.ExternKernel.require_contiguous(result)
    size = [height * factor, width * factor]
    if many:
        result = lowering.view(result, [n, *size, channels])
        return lowering.permute(result, [0, 3, 1, 2])
    return lowering.view(result, [n, channels, *size])
