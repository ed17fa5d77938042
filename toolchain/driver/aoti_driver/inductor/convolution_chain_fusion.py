"""Finds a fused convolution of pixels (1x1) whose only reader is a depthwise one, and the one of
pixels that only reads that, and makes one operator of them (convolution_chain.py).
"""

from __future__ import annotations

from typing import Any

from torch import fx

from aoti_driver.inductor import convolution_chain, convolution_epilogue
from aoti_driver.program.graph_nodes import is_functional, write_anew

# The places of the arguments of convolution_epilogue's operator.
_X, _WEIGHT, _SCALE, _SHIFT, _RESIDUAL = range(5)
_GEOMETRY = slice(5, 9)
_GROUPS, _ACTIVATION, _RESIDUAL_LAST, _LOW, _HIGH, _TRANSPOSED, _NARROW = range(9, 16)
_OF_PIXELS = ([1, 1], [0, 0], [0, 0], [1, 1])


def fuse(module: fx.GraphModule) -> None:
    """Puts the operator into a graph that convolution_fusion.fuse has been through."""
    graph = module.graph
    replaced: set[fx.Node] = set()
    for node in list(graph.nodes):
        stages = None if node in replaced else _chain(node)
        if stages is not None and _nothing_is_written(stages):
            _replace(graph, stages)
            replaced.update(stages)
    write_anew(module, bool(replaced))


def _chain(first: fx.Node) -> list[fx.Node] | None:
    # A depthwise convolution reads floats.
    if not _is_of_pixels(first) or first.args[_RESIDUAL] is not None or first.args[_NARROW]:
        return None
    second = _only_reader(first)
    if second is None or not _is_depthwise(second):
        return None
    stages = [first, second]
    third = _only_reader(second)
    if second.args[_RESIDUAL] is None and third is not None and _is_of_pixels(third):
        stages.append(third)
    return stages


def _is_fused(node: fx.Node) -> bool:
    is_operator = node.op == "call_function" and node.target == convolution_epilogue.OPERATOR
    return is_operator and not node.args[_TRANSPOSED]


def _only_reader(node: fx.Node) -> fx.Node | None:
    """The only user, if it is a convolution of the node's value."""
    if len(node.users) != 1:
        return None
    (user,) = node.users
    is_image = _is_fused(user) and user.args[_X] is node
    return user if is_image and node not in user.args[1:] else None


def _is_of_pixels(node: fx.Node) -> bool:
    if not _is_fused(node):
        return False
    kernel, geometry = tuple(_weight(node).shape[2:]), tuple(node.args[_GEOMETRY])
    return bool(kernel == (1, 1) and node.args[_GROUPS] == 1 and geometry == _OF_PIXELS)


def _is_depthwise(node: fx.Node) -> bool:
    channels, of_group, *_ = _weight(node).shape
    return bool(of_group == 1 and channels == node.args[_GROUPS] and channels > 1)


def _weight(node: fx.Node) -> Any:
    weight: Any = node.args[_WEIGHT]
    return weight.meta["val"]


def _nothing_is_written(stages: list[fx.Node]) -> bool:
    node = stages[0]
    while node is not stages[-1]:
        if node not in stages and not is_functional(node):
            return False
        node = node.next
    return True


def _replace(graph: fx.Graph, stages: list[fx.Node]) -> None:
    first, second, last = stages[0], stages[1], stages[-1]

    def each(place: int) -> list[Any]:
        return [stage.args[place] for stage in stages]

    with graph.inserting_before(last):
        chain = graph.call_function(
            convolution_chain.OPERATOR,
            (
                *(first.args[_X], each(_WEIGHT), each(_SCALE), each(_SHIFT), last.args[_RESIDUAL]),
                *(*second.args[_GEOMETRY], second.args[_GROUPS], each(_ACTIVATION)),
                *(last.args[_RESIDUAL_LAST], each(_LOW), each(_HIGH), last.args[_NARROW]),
            ),
        )
        chain.meta = dict(last.meta)
    last.replace_all_uses_with(chain)
    for stage in reversed(stages):
        graph.erase_node(stage)
