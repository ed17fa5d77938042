"""Attention that a model writes out, or that has another number of dims than PyTorch's operator.

PyTorch's kernel of attention takes [batch, heads, positions, numbers]. For other tensors, such as
those of attention along the rows of an image or between pairs of residues, the operator computes
two products and a softmax, whose scores take memory. Of what is written out, Inductor recognises a
few forms with four dims.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aoti_driver.inductor import einsum_products
from aoti_driver.program.graph_nodes import (
    all_arguments,
    caller,
    is_functional,
    same_sizes,
    value_of,
    write_anew,
)

_ATEN: Any = torch.ops.aten
_OPERATOR = _ATEN.scaled_dot_product_attention.default
_PRODUCTS = (_ATEN.matmul.default, _ATEN.bmm.default)
_SUMS = (_ATEN.add.Tensor, _ATEN.add_.Tensor)
_MULTIPLES = (_ATEN.mul.Tensor, _ATEN.mul_.Tensor)
_QUOTIENTS = (_ATEN.div.Tensor, _ATEN.div_.Tensor)
_FILLS = (_ATEN.masked_fill.Scalar, _ATEN.masked_fill_.Scalar)
_CHOICES = (_ATEN.where.ScalarOther, _ATEN.where.ScalarSelf)
_VIEWS = (_ATEN.view.default, _ATEN.reshape.default)
_VIEWS_LIKE = (_ATEN.view_as.default, _ATEN.reshape_as.default)
# What may be between the first product and the softmax.
_BETWEEN = (*_SUMS, *_MULTIPLES, *_QUOTIENTS, *_FILLS, *_CHOICES, *_VIEWS, *_VIEWS_LIKE)
_DTYPES = (torch.float32, torch.bfloat16)
# With more numbers for each position, the products take nearly all of the time.
_MOST_NUMBERS = 256
# A score that is no larger than the first number has no weight beside any other one. The second one
# is so small that nothing but itself comes from adding a score: a row without any other key then
# has equal weights, as if the scores were replaced. (Of the least float, kernels make infinity.)
_LARGEST_FILL = -1e4
FILL = -1e30


class _OtherError(Exception):
    """What a graph computes is not attention."""


@dataclasses.dataclass(frozen=True)
class _Mask:
    """What is added to scores. It has their dims, or fewer."""

    node: fx.Node  # of the scores' dtype, or of bool
    # If given: the scores are replaced by this number, where `node` is equal to `where`.
    fill: float | None = None
    where: bool = True


@dataclasses.dataclass(frozen=True)
class _Attention:
    """Of tensors [..., positions, numbers]."""

    query: fx.Node
    key: fx.Node
    value: fx.Node
    masks: Sequence[_Mask]  # the last one first
    is_causal: bool
    scale: float | None  # of the scores; None: that of PyTorch's operator
    nodes: Sequence[fx.Node]  # that compute it, the last one first
    # Whether `key` is [..., numbers, positions], of any permutation.
    turned: bool = False
    # Masks are added to this view of the scores, whose first dim is split in two: as in windows, of
    # which several belong to an image.
    view: fx.Node | None = None

    def leading(self) -> Sequence[Any]:
        """The sizes of the scores before those of queries and keys."""
        size: torch.Size = _shape(self.view or self.query)[:-2]
        return size


def put(module: fx.GraphModule) -> None:
    """Puts PyTorch's operator with four dims into the graph, whose values stay as they are."""
    changed = einsum_products.put(module, _BETWEEN)
    graph = module.graph
    for target in (_OPERATOR, *_PRODUCTS):
        for node in graph.find_nodes(op="call_function", target=target):
            try:
                found = _called(node) if target is _OPERATOR else _written(node)
            except _OtherError:
                continue
            if _is_supported(found):
                _replace(graph, found)
                changed = True
    write_anew(module, changed)


def _called(node: fx.Node) -> _Attention:
    query, key, value, mask, dropout, is_causal, scale, _ = all_arguments(node)
    if dropout != 0 or len(_shape(query)) == 4:
        raise _OtherError
    masks = () if mask is None else (_Mask(mask),)
    return _Attention(query, key, value, masks, is_causal, scale, (node,))


class _Steps:
    """The steps of a computation, from the last one back."""

    def __init__(self, last: fx.Node) -> None:
        self.nodes = [last]

    def take(self, node: Any, targets: Sequence[Any]) -> bool:
        """Takes a call of one of them, if nothing but the steps after it reads its result."""
        if not isinstance(node, fx.Node) or node.target not in targets:
            return False
        if not all(user in self.nodes for user in node.users):
            return False
        self.nodes.append(node)
        return True

    def masks(self, scores: Any) -> tuple[Any, list[_Mask]]:
        """What the scores were before they were masked, and the masks."""
        masks: list[_Mask] = []
        while True:
            if self.take(scores, _SUMS):
                scores, mask = _summed(scores)
            elif self.take(scores, _FILLS) or self.take(scores, _CHOICES):
                scores, mask = _filled(scores)
            else:
                return scores, masks
            masks.append(mask)

    def scale(self, scores: Any) -> tuple[Any, float]:
        """What the scores were before they were multiplied by a number, and this."""
        scale = 1.0
        while self.take(scores, (*_MULTIPLES, *_QUOTIENTS)):
            before, factor = scores.args
            if not isinstance(factor, int | float) or factor == 0:
                raise _OtherError
            scale = scale * factor if scores.target in _MULTIPLES else scale / factor
            scores = before
        return scores, scale

    def others_write(self) -> bool:
        """Whether something else may write to memory between the first step and the last one."""
        node, own = self.nodes[-1], set(self.nodes)
        while node is not self.nodes[0]:
            node = node.next
            if node not in own and not is_functional(node):
                return True
        return False


def _summed(node: fx.Node) -> tuple[Any, _Mask]:
    """The scores, and what is added to them."""
    parts: list[Any] = list(node.args)
    if node.kwargs or not all(isinstance(part, fx.Node) for part in parts):
        raise _OtherError
    if not same_sizes(_shape(parts[0]), _shape(node)):
        parts.reverse()
    scores, mask = parts
    if value_of(mask).dtype != value_of(node).dtype:
        raise _OtherError
    return scores, _Mask(mask)


def _filled(node: fx.Node) -> tuple[Any, _Mask]:
    """The scores, and which of them are replaced by a number."""
    arguments: list[Any] = list(node.args)
    if node.target in _FILLS:
        scores, condition, fill = arguments
    elif node.target is _ATEN.where.ScalarOther:
        condition, scores, fill = arguments
    else:
        condition, fill, scores = arguments
    if not isinstance(fill, int | float) or not fill <= _LARGEST_FILL:
        raise _OtherError
    fill = fill if fill == -math.inf else FILL
    return scores, _Mask(condition, fill, node.target is not _ATEN.where.ScalarOther)


def _written(node: fx.Node) -> _Attention:
    """softmax(scale * query @ key' + masks) @ value"""
    steps = _Steps(node)
    weights: Any
    value: Any
    weights, value = node.args
    while steps.take(weights, (_ATEN.dropout.default,)):
        weights = _read(weights, where=not weights.args[2])
    if not steps.take(weights, (_ATEN.softmax.int,)):
        raise _OtherError
    scores = _read(weights, where=_is_over_last_dim(weights))
    scores, masks = steps.masks(scores)
    view: Any = None
    if steps.take(scores, (*_VIEWS, *_VIEWS_LIKE)):
        view, inside = steps.masks(scores.args[0])
        if not steps.take(view, _VIEWS):
            raise _OtherError
        scores, before = steps.masks(_read(view, where=_splits_first_dim(view)))
        masks += inside + before
    scores, scale = steps.scale(scores)
    if not steps.take(scores, _PRODUCTS) or steps.others_write():
        raise _OtherError
    query, turned = scores.args
    key = _untransposed(turned)
    nodes = steps.nodes
    return _Attention(query, key, value, masks, False, scale, nodes, key is turned, view)


def _read(node: fx.Node, *, where: bool) -> Any:
    """What the node reads first."""
    if not where:
        raise _OtherError
    return node.args[0]


def _is_over_last_dim(softmax: fx.Node) -> bool:
    scores, dim, _ = all_arguments(softmax)
    return dim in (-1, len(_shape(scores)) - 1)


def _splits_first_dim(view: fx.Node) -> bool:
    before, after = _shape(view.args[0]), _shape(view)
    return len(after) == len(before) + 1 >= 4 and same_sizes(before[1:], after[2:])


def _untransposed(node: Any) -> Any:
    """What has the node's last two dims in the other order; the node, if it is a permutation whose
    last two dims can be exchanged.
    """
    if not isinstance(node, fx.Node):
        raise _OtherError
    rank = len(_shape(node))
    last_two = [rank - 2, rank - 1]
    dims: list[Any] = list(node.args[1:])
    if node.target is _ATEN.transpose.int:
        turned = sorted(dim % rank for dim in dims) == last_two
    elif node.target is _ATEN.permute.default:
        order = [dim % rank for dim in dims[0]]
        turned = order == [*range(rank - 2), *last_two[::-1]]
        if not turned and order[-2] > order[-1]:
            return node
    else:
        turned = node.target is _ATEN.mT.default
    return _read(node, where=turned)


def _shape(node: Any) -> torch.Size:
    size: torch.Size = value_of(node).shape
    return size


def _is_one(size: Any) -> bool:
    return statically_known_true(size == 1)


def _is_supported(attention: _Attention) -> bool:
    nodes = (attention.query, attention.key, attention.value)
    masks = [mask.node for mask in attention.masks]
    if not all(isinstance(node, fx.Node) for node in (*nodes, *masks)):
        return False
    query, key, value = map(value_of, nodes)
    key = key.mT if attention.turned else key
    numbers = query.shape[-1]
    scores = (*attention.leading(), query.shape[-2], key.shape[-2])
    return (
        query.dtype in _DTYPES
        and key.dtype == value.dtype == query.dtype
        and query.dim() >= 3
        and all(same_sizes(x.shape[:-2], query.shape[:-2]) for x in (key, value))
        and same_sizes(key.shape[-2:-1], value.shape[-2:-1])
        and isinstance(numbers, int)
        and 0 < numbers <= _MOST_NUMBERS
        and _suits_values(attention, numbers, value.shape[-1])
        and all(_suits(value_of(mask), query.dtype, scores) for mask in masks)
    )


def _suits_values(attention: _Attention, numbers: int, of_values: Any) -> bool:
    """Whether values have as many numbers as queries, or up to twice as many: zeros are put behind
    the queries and keys then.
    """
    if attention.view is not None or not isinstance(of_values, int):
        return same_sizes((numbers,), (of_values,))
    return numbers <= of_values <= min(2 * numbers, _MOST_NUMBERS)


def _suits(mask: Tensor, dtype: torch.dtype, scores: Sequence[Any]) -> bool:
    """Whether the mask is one of the scores, with sizes of one or of theirs."""
    of_mask = scores[len(scores) - mask.dim() :]
    return (
        mask.dtype in (dtype, torch.bool)
        and 2 <= mask.dim() <= len(scores)
        and all(
            _is_one(a) or same_sizes((a,), (b,)) for a, b in zip(mask.shape, of_mask, strict=True)
        )
        and same_sizes(mask.shape[-1:], scores[-1:])
    )


def _replace(graph: fx.Graph, attention: _Attention) -> None:
    node, view, scale = attention.nodes[0], attention.view, attention.scale
    inputs = [attention.query, attention.key, attention.value]
    with graph.inserting_before(node):
        call = caller(graph, node)
        if attention.turned:
            inputs[1] = call(_ATEN.transpose.int, inputs[1], -2, -1)
        numbers, of_values = (_shape(x)[-1] for x in (attention.query, attention.value))
        if not same_sizes((numbers,), (of_values,)):
            zeros = [0, of_values - numbers]
            inputs[:2] = [call(_ATEN.constant_pad_nd.default, x, zeros) for x in inputs[:2]]
            scale = numbers**-0.5 if scale is None else scale
        if view is not None:
            *leading, queries, keys = _sizes(view)
            inputs = [
                call(_ATEN.reshape.default, x, [*leading, positions, _shape(x)[-1]])
                for x, positions in zip(inputs, (queries, keys, keys), strict=True)
            ]
        mask = None
        for part in reversed(attention.masks):
            mask = _masked(call, mask, part, value_of(attention.query).dtype)
        order, batch = _two_dims(attention, mask)
        rank = len(order) + 2

        def reordered(x: fx.Node) -> fx.Node:
            for _ in range(rank - len(_shape(x))):
                x = call(_ATEN.unsqueeze.default, x, 0)
            if order == sorted(order):
                return x
            return call(_ATEN.permute.default, x, [*order, rank - 2, rank - 1])

        def flat(x: fx.Node) -> fx.Node:
            if rank == 3:
                return call(_ATEN.unsqueeze.default, x, 1)
            x = call(_ATEN.flatten.using_ints, x, batch, rank - 3)
            return call(_ATEN.flatten.using_ints, x, 0, batch - 1)

        query, *others = map(reordered, inputs)
        others = [flat(x) for x in others]
        if mask is not None:
            mask = call(_ATEN.contiguous.default, flat(reordered(mask)))
        result = call(
            *(_OPERATOR, flat(query), *others, mask, 0.0, attention.is_causal),
            scale=scale,
        )
        result = call(_ATEN.reshape_as.default, result, query)
        if order != sorted(order):
            back = [order.index(dim) for dim in range(len(order))]
            result = call(_ATEN.permute.default, result, [*back, rank - 2, rank - 1])
        if view is not None:
            result = call(_ATEN.reshape_as.default, result, attention.query)
    node.replace_all_uses_with(result)
    for step in attention.nodes:
        graph.erase_node(step)


def _masked(
    call: Callable[..., fx.Node], before: fx.Node | None, mask: _Mask, dtype: torch.dtype
) -> fx.Node:
    """What is added to the scores, with one mask more."""
    if mask.fill is None:
        return mask.node if before is None else call(_ATEN.add.Tensor, before, mask.node)
    replaced = mask.node if mask.where else call(_ATEN.logical_not.default, mask.node)
    if before is None:
        before = call(_ATEN.zeros_like.default, mask.node, dtype=dtype)
    return call(_ATEN.masked_fill.Scalar, before, replaced, mask.fill)


def _sizes(view: fx.Node) -> Sequence[Any]:
    """Those that the view is given."""
    sizes: Any = view.args[1]
    return sizes  # type: ignore[no-any-return]


def _two_dims(attention: _Attention, mask: fx.Node | None) -> tuple[list[int], int]:
    """The leading dims in the order in which they become batch and heads, and how many of them
    become the batch.

    A mask that is the same along some dims has one of the two for these, so that it need not be
    copied for each of their places.
    """
    count = len(attention.leading())
    dims = list(range(count))
    usual = (dims, max(count - 1, 1))
    if mask is None:
        return usual
    size = (1,) * (count + 2 - len(_shape(mask))) + _shape(mask)
    same = [dim for dim in dims if _is_one(size[dim])]
    different = [dim for dim in dims if dim not in same]
    if not same or not different:
        return usual
    if dims == different + same:
        return dims, len(different)
    return same + different, len(same)
