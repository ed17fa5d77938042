"""Attention that a model writes out, where Inductor puts PyTorch's operator in its place.

Inductor's patterns are stored without the numbers in them. The order of a permutation, the dim of
a softmax, the value that a mask writes: whatever stands there matches, and a model that attends
along another dim would get the results of one that doesn't. Here the numbers are compared.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from aoti_driver.program.graph_nodes import same_sizes, value_of
from aoti_driver.torch_internals import patching

_Orders = list[tuple[int, ...]]

_REGISTER = "torch._inductor.fx_passes.fuse_attention:gen_register_replacement"
_ATEN: Any = torch.ops.aten
_REDUCTIONS = (_ATEN.amax.default, _ATEN.sum.dim_IntList, _ATEN.any.dim)
# [batch, positions, heads, numbers] to [batch, heads, positions, numbers]
_HEADS_FIRST = (0, 2, 1, 3)
_TRANSPOSED = ([(0, 2, 1)], [(0, 1, 3, 2)])
_HEADS_FIRST_AND_TRANSPOSED = ([_HEADS_FIRST, (0, 1, 3, 2)], [(0, 2, 3, 1)])


@contextlib.contextmanager
def compared() -> Iterator[None]:
    """Patterns of attention that Inductor registers inside the block match what they mean.

    It registers them once in a process, for good.
    """
    register = patching.original(_REGISTER)

    def registered(*args: Any, extra_check: Callable[[Any], Any], **kwargs: Any) -> None:
        register(
            *args,
            extra_check=lambda match: extra_check(match) and _is_meant(match),
            **kwargs,
        )

    with patching.replaced({_REGISTER: registered}):
        yield


def _is_meant(match: Any) -> bool:
    nodes = set(match.nodes)
    scales = (match.kwargs.get(name) for name in ("inv_scale", "scale_factor"))
    scores, result = _products(match)
    query, key, value = (
        _permutations(source, nodes) for source in (*scores.args[:2], result.args[1])
    )
    batch, *others = _shape(match.kwargs["query"])
    separated = (batch, others[1 if query else 0])
    return (
        not any(isinstance(scale, fx.Node) for scale in scales)
        and all(_is_along_last_dim(node) for node in nodes)
        and _permuted_as_meant(query, key, value)
        and all(_keeps_heads(node, separated) for node in nodes)
        and all(_masks_as_meant(node, nodes) for node in nodes)
    )


def _is_along_last_dim(node: fx.Node) -> bool:
    """Unless it is a step of a softmax along another one."""
    if node.target not in _REDUCTIONS:
        return True
    dims: Any = node.args[1]
    last = len(_shape(node)) - 1
    return (list(dims) if isinstance(dims, (list, tuple)) else [dims]) in ([-1], [last])


def _keeps_heads(node: fx.Node, separated: Sequence[Any]) -> bool:
    """Whether a view joins batch and heads, or gives them their sizes again."""
    if node.target is not _ATEN.view.default:
        return True
    before, after = _shape(node.args[0]), _shape(node)
    if len(before) == 2:  # a mask of keys
        return same_sizes(after, (before[0], 1, 1, before[1]))
    return same_sizes(before[-2:], after[-2:]) and (
        len(after) != 4 or same_sizes(after[:2], separated)
    )


def _permuted_as_meant(query: _Orders, key: _Orders, value: _Orders) -> bool:
    """Whether heads come before positions, for all three or for none, and keys are transposed."""
    if not query:
        return key in _TRANSPOSED
    return query == value == [_HEADS_FIRST] and key in _HEADS_FIRST_AND_TRANSPOSED


def _products(match: Any) -> tuple[Any, Any]:
    """That of queries and keys, and that of weights and values."""
    result: Any = match.output_nodes()[0]
    while result.target is not _ATEN.bmm.default:
        result = result.args[0]
    (scores,) = (n for n in match.nodes if n.target is _ATEN.bmm.default and n is not result)
    return scores, result


def _permutations(node: Any, nodes: set[fx.Node]) -> _Orders:
    """Those between an input of the pattern and the node, the input's first."""
    found = []
    while node in nodes:
        if node.target is _ATEN.permute.default:
            rank = len(_shape(node))
            found.append(tuple(dim % rank for dim in node.args[1]))
        node = node.args[0]
    return found[::-1]


def _masks_as_meant(node: fx.Node, nodes: set[fx.Node]) -> bool:
    """Whether a mask's zeros get a score of minus infinity."""
    if node.target is _ATEN.eq.Scalar:
        value: Any = node.args[1]
        return bool(value == (-math.inf if node.args[0] in nodes else 0))
    if node.target is not _ATEN.where.self:
        return True
    condition: Any = node.args[0]
    # A row without a key has no softmax, and zeros in its place.
    expected = 0 if condition.target is _ATEN.logical_not.default else -math.inf
    filled: list[Any] = [
        x.args[1]
        for x in node.args[1:]
        if isinstance(x, fx.Node) and x in nodes and x.target is _ATEN.full.default
    ]
    return filled == [expected]


def _shape(node: Any) -> torch.Size:
    size: torch.Size = value_of(node).shape
    return size
