"""Which attention becomes PyTorch's operator with four dims, and what is left as it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from aoti_driver.inductor import attention_calls
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

Function = Callable[..., Any]

_BATCH, _ROWS, _HEADS, _QUERIES, _KEYS, _NUMBERS = 2, 5, 3, 6, 7, 8

_GENERATOR = torch.Generator().manual_seed(0)


def numbers(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=_GENERATOR)


def inputs(*leading: int) -> list[Tensor]:
    """Queries, keys and values."""
    return [numbers(*leading, positions, _NUMBERS) for positions in (_QUERIES, _KEYS, _KEYS)]


def operators(function: Function, *given: Tensor, dynamic: bool = False) -> list[Any]:
    """The calls of PyTorch's operator in the function's graph, which has equal results with them.

    dynamic: whether the first dim of each input may vary.
    """

    class Module(nn.Module):
        def forward(self, *tensors: Tensor) -> Any:
            return function(*tensors)

    model = Module().eval()
    shapes = ({0: Dim("batch", min=2, max=64)},) * len(given) if dynamic else None
    exported = torch.export.export(
        model, given, dynamic_shapes={"tensors": shapes} if shapes else None
    )
    module: Any = exported.module()
    attention_calls.put(module)
    if dynamic:
        for node in module.graph.find_nodes(op="placeholder"):
            assert not node.meta["val"].shape[0].node.expr.is_number
        given = tuple(torch.cat([x, x]) for x in given)
    tolerance = 2e-2 if given[0].dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(
        module(*given), function(*given), rtol=tolerance, atol=tolerance, equal_nan=True
    )
    target = torch.ops.aten.scaled_dot_product_attention.default
    nodes: list[Any] = module.graph.find_nodes(op="call_function", target=target)
    return nodes


def attention(
    query: Tensor, key: Tensor, value: Tensor, *masks: Tensor, scale: float = 0.3
) -> Tensor:
    scores = query @ key.transpose(-1, -2) * scale
    for mask in masks:
        scores = scores + mask
    return scores.softmax(-1) @ value


def in_place(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = query @ key.mT
    scores *= 0.5
    scores += mask
    return functional.dropout(functional.softmax(scores, 4), 0.1, training=False) @ value


def turned(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = (query / 2) @ key.permute(0, 1, 2, -1, 3) / math.sqrt(_NUMBERS)
    return torch.softmax(mask + scores, dim=-1) @ value


def in_windows(query: Tensor, key: Tensor, value: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """Of windows, several to an image, each of which has a mask."""
    scores = query @ key.transpose(2, 3) + places
    windows = scores.view(-1, mask.shape[0], *scores.shape[1:]) + mask[:, None]
    return windows.view_as(scores).softmax(-1) @ value


def einsums(scores: str, result: str) -> Function:
    """Attention, with the equations of both products."""

    def function(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = (torch.einsum(scores, query, key) * 0.3).softmax(-1)
        return torch.einsum(result, functional.dropout(weights, 0.1, training=False), value)

    return function


def values_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = torch.einsum("bjhd, bihd -> bhij", key, query)
    scores = scores + torch.ones(_KEYS)[None]
    return torch.einsum("bjhd, bhij -> bihd", value, scores.softmax(-1))


_LEADING = (_BATCH, _ROWS, _HEADS)
_SCORES = (_QUERIES, _KEYS)


def inputs_of_values(count: int) -> list[Tensor]:
    """Values of so many numbers."""
    return [*inputs(*_LEADING)[:2], numbers(*_LEADING, _KEYS, count)]


def masked(*sizes: int, leading: tuple[int, ...] = _LEADING) -> list[Tensor]:
    return [*inputs(*leading), numbers(*sizes, *_SCORES)]


# name -> function, inputs of which the first dim may vary, sizes of batch and heads
_REPLACED: dict[str, tuple[Function, list[Tensor], tuple[int, int]]] = {
    "rows": (attention, inputs(*_LEADING), (_BATCH * _ROWS, _HEADS)),
    "six dims": (attention, inputs(2, 3, 2, 2), (12, 2)),
    "three dims": (attention, inputs(_BATCH), (_BATCH, 1)),
    "four dims": (attention, inputs(_BATCH, _HEADS), (_BATCH, _HEADS)),
    "a mask of each pair": (attention, masked(*_LEADING), (_BATCH * _ROWS, _HEADS)),
    "a mask for all rows": (attention, masked(_BATCH, 1, _HEADS), (_ROWS, _BATCH * _HEADS)),
    "a mask that is turned": (
        lambda q, k, v, mask: attention(q, k, v, mask.permute(0, 3, 1, 2)[:, None]),
        [*inputs(*_LEADING), numbers(_BATCH, *_SCORES, _HEADS)],
        (_ROWS, _BATCH * _HEADS),
    ),
    "a mask along the third of six dims": (
        attention,
        masked(2, 3, 1, 2, leading=(2, 3, 4, 2)),
        (4, 12),
    ),
    "a mask for all heads": (attention, masked(_BATCH, _ROWS, 1), (_BATCH * _ROWS, _HEADS)),
    "in place": (in_place, masked(_BATCH, 1, _HEADS), (_ROWS, _BATCH * _HEADS)),
    "turned": (turned, masked(_BATCH, _ROWS, 1), (_BATCH * _ROWS, _HEADS)),
    "keys that are permuted": (
        lambda q, k, v, mask: (q @ k.permute(0, 2, 3, 1) * 0.4 + mask).softmax(-1) @ v,
        [
            numbers(_BATCH, _HEADS, _QUERIES, _NUMBERS),
            numbers(_BATCH, _KEYS, _HEADS, _NUMBERS),
            numbers(_BATCH, _HEADS, _KEYS, _NUMBERS),
            numbers(_BATCH, _HEADS, *_SCORES),
        ],
        (_BATCH, _HEADS),
    ),
    "more numbers of values": (
        attention,
        [*inputs_of_values(2 * _NUMBERS), numbers(_BATCH, 1, _HEADS, *_SCORES)],
        (_ROWS, _BATCH * _HEADS),
    ),
    "the operator with more numbers of values": (
        functional.scaled_dot_product_attention,
        inputs_of_values(_NUMBERS + 3),
        (_BATCH * _ROWS, _HEADS),
    ),
    "two masks": (
        attention,
        [*masked(_BATCH, 1, _HEADS), numbers(_BATCH, _ROWS, 1, 1, _KEYS)],
        (_BATCH * _ROWS, _HEADS),
    ),
    "bmm": (
        lambda q, k, v: torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(2), v),
        inputs(_BATCH),
        (_BATCH, 1),
    ),
    "einsum": (
        einsums("bhid,bhjd->bhij", "bhij,bhjd->bhid"),
        inputs(_BATCH, _HEADS),
        (_BATCH, _HEADS),
    ),
    "einsum, heads last": (
        einsums("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),
        [x.transpose(1, 2).contiguous() for x in inputs(_BATCH, _HEADS)],
        (_BATCH, _HEADS),
    ),
    "einsum, values first": (
        values_first,
        [x.transpose(1, 2).contiguous() for x in inputs(_BATCH, _HEADS)],
        (_BATCH, _HEADS),
    ),
    "einsum, columns of an image": (
        einsums("brcid,brcjd->rbcij", "rbcij,brcjd->ribcd"),
        inputs(*_LEADING),
        (_ROWS * _BATCH, _HEADS),
    ),
    "the operator": (
        functional.scaled_dot_product_attention,
        inputs(*_LEADING),
        (_BATCH * _ROWS, _HEADS),
    ),
    "the operator with a mask": (
        lambda q, k, v, mask: functional.scaled_dot_product_attention(
            q, k, v, mask > -1, scale=0.2
        ),
        masked(_BATCH, 1, _HEADS),
        (_ROWS, _BATCH * _HEADS),
    ),
    "the operator with three dims": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        inputs(_BATCH),
        (_BATCH, 1),
    ),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", _REPLACED)
def test_replaced(name: str, dynamic: bool) -> None:
    function, given, sizes = _REPLACED[name]
    (node,) = operators(function, *given, dynamic=dynamic)
    assert all(x.meta["val"].dim() == 4 for x in node.args[:3])
    assert all(x.meta["val"].is_contiguous() for x in node.args[3:4] if x is not None)
    if not dynamic:
        assert node.args[0].meta["val"].shape[:2] == sizes


_HIDDEN = torch.tensor([False, True, False, False, True, True, False])
_EARLIER = torch.ones(_QUERIES, _KEYS).tril().bool()


def hidden(fill: float, *, in_place: bool = False) -> Function:
    """Attention without some keys, and without later ones; one of the rows has no key."""

    def function(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        scores = query @ key.transpose(-1, -2) / 2
        if in_place:
            scores.masked_fill_(_HIDDEN[None, None], fill)
            scores += mask
        else:
            scores = (scores + mask).masked_fill(_HIDDEN[None], fill)
        some = _EARLIER & (torch.arange(_QUERIES)[:, None] != 3 if fill > -math.inf else True)
        scores = torch.where(some, scores, fill)
        return torch.where(~_EARLIER, fill, scores).softmax(-1) @ value

    return function


@pytest.mark.parametrize("fill", [-math.inf, torch.finfo(torch.float32).min, -1e9, -10000])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_filled(fill: float, in_place: bool, dynamic: bool) -> None:
    given = masked(_BATCH, 1, _HEADS)
    (node,) = operators(hidden(fill, in_place=in_place), *given, dynamic=dynamic)
    fills = node.graph.find_nodes(
        op="call_function", target=torch.ops.aten.masked_fill.Scalar, sort=False
    )
    assert {one.args[2] for one in fills} == {fill if fill == -math.inf else attention_calls.FILL}


def test_the_last_fill_counts() -> None:
    """Some keys are hidden from all, and those of a row without any others have equal weights."""

    def function(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.mT + torch.zeros(_KEYS)[None]
        scores = scores.masked_fill(torch.ones(_QUERIES, _KEYS).bool(), -math.inf)
        return scores.masked_fill(_HIDDEN[None], -1e9).softmax(-1) @ value

    assert len(operators(function, *inputs(*_LEADING))) == 1


def test_a_mask_of_four_dims_that_is_turned() -> None:
    places = numbers(*_SCORES, _HEADS).permute(2, 0, 1)
    (node,) = operators(lambda *x: attention(*x, places), *inputs(_BATCH, _HEADS))
    assert node.args[3].meta["val"].is_contiguous()


def test_bfloat16() -> None:
    given = [x.bfloat16() for x in masked(_BATCH, 1, _HEADS)]
    assert len(operators(attention, *given)) == 1


@pytest.mark.parametrize("dynamic", [False, True])
def test_windows(dynamic: bool) -> None:
    """Those of an image are among the heads, so that no mask is made for each image."""
    given = [numbers(2, 4, _HEADS, _QUERIES, _NUMBERS) for _ in range(3)]
    places, mask = numbers(_HEADS, _QUERIES, _QUERIES), numbers(4, _QUERIES, _QUERIES)

    def function(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (x.flatten(0, 1) for x in (query, key, value))
        return in_windows(query, key, value, places, mask)

    (node,) = operators(function, *given, dynamic=dynamic)
    assert node.args[3].meta["val"].shape == (1, 4 * _HEADS, _QUERIES, _QUERIES)


def with_scores(change: Function) -> Function:
    """Attention whose scores are changed before the softmax."""

    def function(query: Tensor, key: Tensor, value: Tensor, *others: Tensor) -> Tensor:
        scores: Tensor = change(query @ key.transpose(-1, -2), *others)
        return scores.softmax(-1) @ value

    return function


def with_weights(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    weights = (query @ key.transpose(-1, -2)).softmax(-1)
    return weights @ value, weights


def writing(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    query = query * 1
    scores = query @ key.transpose(-1, -2)
    query.add_(1)
    return scores.softmax(-1) @ value + query


_WIDE = [numbers(2, 3, 4, 300) for _ in range(3)]
_KEPT: dict[str, tuple[Function, list[Tensor]]] = {
    "another softmax": (
        lambda q, k, v: (q @ k.transpose(-1, -2)).softmax(-2) @ v,
        inputs(*_LEADING),
    ),
    "another transposition": (
        lambda q, k, v: (q @ k.transpose(1, 2)).softmax(-1) @ v,
        [numbers(2, 8, 8, 8) for _ in range(3)],
    ),
    "another permutation": (
        lambda q, k, v: (q @ k.permute(2, 3, 0, 1)).softmax(-1) @ v,
        [numbers(5, 8, 6, 8), numbers(8, 7, 5, 8), numbers(5, 8, 7, 8)],
    ),
    "fewer numbers of values": (attention, inputs_of_values(_NUMBERS - 1)),
    "many numbers of values": (attention, inputs_of_values(2 * _NUMBERS + 1)),
    "no transposition": (lambda q, k, v: (q @ k).softmax(-1) @ v, [numbers(2, 6, 6)] * 3),
    "weights that are returned": (with_weights, inputs(*_LEADING)),
    "queries that are written": (writing, inputs(*_LEADING)),
    "a mask with more rows": (
        with_scores(lambda scores, mask: scores + mask),
        [*inputs(_BATCH, 1), numbers(_BATCH, _ROWS, *_SCORES)],
    ),
    "a mask of queries": (
        with_scores(lambda scores, mask: scores + mask),
        [*inputs(_BATCH, 1), numbers(_BATCH, 1, _QUERIES, 1)],
    ),
    "a mask of keys alone": (
        with_scores(lambda scores, mask: scores + mask),
        [*inputs(_BATCH, 1), numbers(_KEYS)],
    ),
    "half of a mask": (
        with_scores(lambda scores, mask: torch.add(scores, mask, alpha=0.5)),
        masked(_BATCH, 1, _HEADS),
    ),
    "a mask of integers": (
        with_scores(lambda scores, mask: scores + (mask > 0)),
        masked(_BATCH, 1, _HEADS),
    ),
    "a sum with a number": (with_scores(lambda scores: scores + 1), inputs(*_LEADING)),
    "a scale for each row": (
        with_scores(lambda scores, scale: scores * scale),
        masked(_BATCH, 1, _HEADS),
    ),
    "a mask before the scale": (
        with_scores(lambda scores, mask: (scores + mask) * 0.5),
        masked(_BATCH, 1, _HEADS),
    ),
    "a small fill": (
        with_scores(lambda scores: scores.masked_fill(_HIDDEN[None], -100)),
        inputs(*_LEADING),
    ),
    "a fill that is not a number": (
        with_scores(lambda scores: scores.masked_fill(_HIDDEN[None], math.nan)),
        inputs(*_LEADING),
    ),
    "a fill that is chosen by scores of more rows": (
        with_scores(lambda scores, mask: torch.where(mask > 0, scores, -1e9)),
        [*inputs(_BATCH, 1), numbers(_BATCH, _ROWS, *_SCORES)],
    ),
    "a division by zero": (with_scores(lambda scores: scores / 0.0), inputs(*_LEADING)),
    "dropout in training": (
        lambda q, k, v: (
            functional.dropout((q @ k.transpose(-1, -2)).softmax(-1), 0.0, training=True) @ v
        ),
        inputs(*_LEADING),
    ),
    "einsum, the softmax of queries": (
        einsums("bhid,bhjd->bhji", "bhji,bhjd->bhid"),
        inputs(_BATCH, _HEADS),
    ),
    "einsum, heads summed": (
        einsums("bhid,bhjd->bij", "bij,bhjd->bhid"),
        inputs(_BATCH, _HEADS),
    ),
    "einsum, numbers alone": (
        lambda q, k, v: torch.einsum(
            "bij,bjde->bid",
            torch.einsum("bid,bje->bij", q, k).softmax(-1),
            torch.stack([v, v], -1),
        ),
        inputs(_BATCH),
    ),
    "einsum, keys of all": (
        einsums("bhid,bhjd->bhij", "bhij,bhjd->bhid"),
        [inputs(3, 4)[0], *inputs(1, 4)[1:]],
    ),
    "einsum, one number of queries for all of keys": (
        einsums("bhid,bhjd->bhij", "bhij,bhjd->bhid"),
        [inputs(3, 4)[0][..., :1], *inputs(3, 4)[1:]],
    ),
    "einsum, a number for each position": (
        einsums("bid,bjd->bij", "bij,bj->bi"),
        [*inputs(_BATCH)[:2], numbers(_BATCH, _KEYS)],
    ),
    "einsum, a diagonal": (
        einsums("bid,bjd->bij", "bii,bid->bid"),
        [inputs(_BATCH)[0]] * 3,
    ),
    "einsum, an ellipsis": (
        einsums("...id,...jd->...ij", "...ij,...jd->...id"),
        inputs(_BATCH, _HEADS),
    ),
    "einsum, of three": (
        lambda q, k, v: torch.einsum("bij,bjd,d->bid", (q @ k.mT).softmax(-1), v, v[0, 0]),
        inputs(_BATCH),
    ),
    "another function": (with_scores(torch.tanh), inputs(*_LEADING)),
    "keys of all rows": (attention, [*inputs(3, 4)[:1], *inputs(1, 4)[1:]]),
    "wide heads": (attention, _WIDE),
    "two dims": (attention, inputs()),
    "float64": (attention, [x.double() for x in inputs(*_LEADING)]),
    "a softmax in float64": (
        lambda q, k, v: (
            functional.softmax(q @ k.transpose(-1, -2), -1, dtype=torch.float64) @ v.double()
        ),
        inputs(*_LEADING),
    ),
    "views of other positions": (
        with_scores(lambda scores: scores.view(2, 3, 5, 7, 6).softmax(-1).view(2, 3, 5, 6, 7)),
        inputs(2, 3, 5),
    ),
    "a mask of all windows": (
        with_scores(
            lambda scores, every, mask: (
                (scores + every).view(2, 4, *scores.shape[1:]) + mask
            ).view_as(scores)
        ),
        [*inputs(8, 2), numbers(8, 1, *_SCORES), numbers(4, 1, *_SCORES)],
    ),
    "heads in two dims": (
        with_scores(lambda scores, mask: (scores.view(2, 2, 2, *_SCORES) + mask).view_as(scores)),
        [*inputs(2, 4), numbers(2, 1, *_SCORES)],
    ),
    "another view back": (
        with_scores(
            lambda scores, mask: (scores.view(2, 4, 2, *_SCORES) + mask).view(4, 4, *_SCORES)
        ),
        [inputs(8, 2)[0], inputs(8, 2)[1], inputs(4, 4)[2], numbers(4, 1, *_SCORES)],
    ),
}


def test_a_number_of_numbers_that_varies() -> None:
    def function(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attention(*(x.permute(1, 2, 0) for x in (query, key, value)))

    assert operators(function, *inputs(3)[:1] * 3, dynamic=True) == []


def test_calls_that_are_kept() -> None:
    operator = functional.scaled_dot_product_attention
    (node,) = operators(operator, *inputs(_BATCH, _HEADS))
    assert node.args[0].op == "placeholder"
    (node,) = operators(lambda q, k, v: operator(q, k, v, dropout_p=1e-9), *inputs(*_LEADING))
    assert node.args[0].op == "placeholder"


def scores_doubled(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = torch.einsum("bid,bjd->bij", query, key)
    return (scores + scores * 0.5).softmax(-1) @ value


def sums_of_sums(x: Tensor, *_: Tensor) -> Tensor:
    for _step in range(60):
        x = x + x * 0.5
    return x.softmax(-1)


@pytest.mark.parametrize("function", [scores_doubled, sums_of_sums])
def test_scores_that_are_read_twice(function: Function) -> None:
    """There are 2 ** 60 ways through the sums, of which each node is looked at once."""
    assert operators(function, *inputs(_BATCH)) == []


@pytest.mark.parametrize("name", _KEPT)
def test_kept(name: str) -> None:
    function, given = _KEPT[name]
    assert operators(function, *given) == []
