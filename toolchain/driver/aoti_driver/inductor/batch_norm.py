"""Batch norms that use stored statistics, and follow no convolution that takes them along.

Such a norm is a factor and a summand for each channel. Inductor would compute both anew for each
element. `replace` puts an operator into graphs that has them as tensors, and `lowered` has Inductor
write its loop.

In a DenseNet a norm follows the concatenation of many images, each of which is in several
concatenations. The operator takes such a norm to the parts, with the `relu` behind it: one loop
reads a part once and writes what becomes of it to its place in each of the results. Otherwise the
concatenations would be copies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from aoti_driver.inductor import concatenation, convolution_epilogue, own_operators
from aoti_driver.inductor.convolution_fusion import CONVOLUTIONS, scale_and_shift
from aoti_driver.program.graph_nodes import (
    all_arguments,
    caller,
    is_float32,
    is_functional,
    write_anew,
)
from aoti_driver.torch_internals import patching

_ATEN: Any = torch.ops.aten


def _reference(parts: Sequence[Tensor], scale: Tensor, shift: Tensor, relu: bool) -> Tensor:
    """parts: float32[n, c_i, ...], which are concatenated. scale, shift: float32[sum of c_i]"""
    x = torch.cat([*parts], 1)
    shape = (-1, *[1] * (x.dim() - 2))
    y = x * scale.reshape(shape) + shift.reshape(shape)
    return torch.relu(y) if relu else y


OPERATOR = own_operators.declare(
    "batch_norm(Tensor[] parts, Tensor scale, Tensor shift, bool relu) -> Tensor",
    _reference,
)

_RELU = (_ATEN.relu.default, _ATEN.relu_.default)


def replace(module: fx.GraphModule) -> None:
    """Puts the operator into the graph. All other nodes have the values that they had."""
    graph, changed = module.graph, False
    for norm in graph.find_nodes(op="call_function", target=_ATEN.batch_norm.default):
        x, weight, bias, mean, variance, training, _, epsilon, _ = all_arguments(norm)
        floats = (value for value in (x, weight, bias, mean, variance) if value is not None)
        if training or mean is None or variance is None or not isinstance(epsilon, float):
            continue
        if not all(map(is_float32, floats)):
            continue
        nodes, parts, relu = [norm], [x], False
        if (found := _around(norm, x)) is not None:
            nodes, parts, relu = found
        last = nodes[-1]
        with graph.inserting_before(last):
            call = caller(graph, norm)
            scale, shift = scale_and_shift(call, norm, None)
            result = graph.call_function(OPERATOR, (parts, scale, shift, relu))
        result.meta = {**last.meta}
        last.replace_all_uses_with(result)
        for node in reversed(nodes):
            graph.erase_node(node)
        changed = True
    write_anew(module, changed)


def _around(norm: fx.Node, x: fx.Node) -> tuple[list[fx.Node], list[fx.Node], bool] | None:
    """The concatenation before the norm, the norm, and a relu; the images that are concatenated;
    and whether there is a relu. None if there is no concatenation, or if something else reads it,
    or if no convolution reads the result: the image then has another layout.
    """
    if x.target != _ATEN.cat.default or len(x.users) != 1 or norm.meta["val"].dim() != 4:
        return None
    parts, dim = all_arguments(x)
    known = all(is_float32(part) and isinstance(part.meta["val"].shape[1], int) for part in parts)
    if dim not in (1, -3) or not known:
        return None
    nodes = [x, norm]
    if len(norm.users) == 1 and next(iter(norm.users)).target in _RELU:
        nodes.extend(norm.users)
    readers = {user.target for user in nodes[-1].users}
    if not readers <= {convolution_epilogue.OPERATOR, *CONVOLUTIONS}:
        return None
    node = x
    while node is not nodes[-1]:
        if node not in nodes and not is_functional(node):
            return None
        node = node.next
    return nodes, [*parts], len(nodes) == 3


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor write the loops."""
    with patching.entries_kept("torch._inductor.lowering:lowerings", [OPERATOR]) as lowerings:
        lowerings[OPERATOR] = _lower
        yield


def _lower(parts: Sequence[Any], scale: Any, shift: Any, relu: bool) -> Any:
    from torch._inductor.virtualized import V

    scale.realize()
    shift.realize()
    results, first = [], 0
    for part in parts:
        results.append(_normalized(part, scale, shift, first, relu))
        first += part.get_size()[1]
    if len(results) == 1:
        return results[0]
    return concatenation.completed(concatenation.memory(V.graph.current_node, parts[0]), results)


def _normalized(x: Any, scale: Any, shift: Any, first: int, relu: bool) -> Any:
    """One part. first: its first channel in the result."""
    from torch._inductor import ir
    from torch._inductor.virtualized import ops

    load, factor, summand = (value.make_loader() for value in (x, scale, shift))

    def inner(index: Sequence[Any]) -> Any:
        channel = [index[1] + first]
        value = load(index) * factor(channel) + summand(channel)
        return ops.relu(value) if relu else value

    return ir.Pointwise.create(
        device=x.get_device(), dtype=x.get_dtype(), inner_fn=inner, ranges=[*x.get_size()]
    )
