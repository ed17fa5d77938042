"""Products around a softmax that a model writes as ``einsum``: they become products of matrices, in
which attention is recognised (attention_calls.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import torch
from torch import fx

from aoti_driver.program.graph_nodes import caller, same_sizes, value_of

_ATEN: Any = torch.ops.aten
_EINSUM = _ATEN.einsum.default


def put(module: fx.GraphModule, between: Collection[Any]) -> bool:
    """Puts the products into the graph, whose values stay as they are. Returns whether any are
    there.

    between: operators that may be between a product and a softmax.
    """
    graph, changed = module.graph, False
    for softmax in graph.find_nodes(op="call_function", target=_ATEN.softmax.int):
        for node in (*_products_before(softmax, between), *_products_after(softmax)):
            changed |= _replace(graph, node)
    return changed


def _products_before(softmax: fx.Node, between: Collection[Any]) -> list[fx.Node]:
    """Those that the softmax reads, perhaps scaled and masked."""
    read = dict.fromkeys(softmax.all_input_nodes)
    unseen = list(read)
    while unseen:
        node = unseen.pop()
        if node.target in between:
            more = [one for one in node.all_input_nodes if one not in read]
            read.update(dict.fromkeys(more))
            unseen += more
    return [node for node in read if node.target is _EINSUM]


def _products_after(softmax: fx.Node) -> list[fx.Node]:
    """Those that read the softmax."""
    users = list(softmax.users)
    for user in users:
        if user.target is _ATEN.dropout.default:
            users += user.users
    return [user for user in users if user.target is _EINSUM]


def _replace(graph: fx.Graph, node: fx.Node) -> bool:
    """Unless it is another sum than that of a product of matrices."""
    equation: Any
    operands: Any
    equation, operands = node.args[:2]
    found = re.fullmatch(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]+)", equation.replace(" ", ""))
    if found is None:
        return False
    left, right, result = found.groups()
    first, second = operands
    of_left, of_right = ([c for c in result if c not in other] for other in (right, left))
    if len(of_left) != 1 or len(of_right) != 1:
        return False
    if result.index(of_left[0]) > result.index(of_right[0]):
        left, right, first, second = right, left, second, first
        of_left, of_right = of_right, of_left
    both = [c for c in result if c in left and c in right]
    summed = [c for c in left if c in right and c not in result]
    # Not if a dim of one of them is summed alone, or stands there twice.
    if len(summed) != 1 or not len(left) == len(right) == len(result) == len(both) + 2:
        return False

    def sizes(x: fx.Node, labels: str) -> list[Any]:
        return [value_of(x).shape[labels.index(c)] for c in both + summed]

    if not same_sizes(sizes(first, left), sizes(second, right)):
        return False
    with graph.inserting_before(node):
        call = caller(graph, node)

        def ordered(x: fx.Node, before: str | list[str], after: str | list[str]) -> fx.Node:
            order = [before.index(c) for c in after]
            return x if order == sorted(order) else call(_ATEN.permute.default, x, order)

        first = ordered(first, left, both + of_left + summed)
        second = ordered(second, right, both + of_right + summed)
        second = call(_ATEN.transpose.int, second, -1, -2)
        product = call(_ATEN.matmul.default, first, second)
        product = ordered(product, both + of_left + of_right, result)
    node.replace_all_uses_with(product)
    graph.erase_node(node)
    return True
