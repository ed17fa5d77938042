"""Which attention that a model writes out becomes PyTorch's operator, and what is left as it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from aoti_driver.inductor import attention_patterns
from torch import Tensor, fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import joint_graph_passes

Function = Callable[..., Tensor]

_KEYS = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]])
_NO_KEY = torch.tensor([[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0]])
_EARLIER = torch.ones(1, 1, 6, 6).tril().bool()
_HEADS_FIRST = (0, 2, 1, 3)


@pytest.fixture(scope="module", autouse=True)
def patterns() -> Iterator[None]:
    """As Inductor registers them in a process of the driver."""
    with attention_patterns.compared():
        yield


def numbers(*sizes: int, count: int = 3) -> list[Tensor]:
    generator = torch.Generator().manual_seed(len(sizes))
    return [torch.randn(*sizes, generator=generator) for _ in range(count)]


def is_fused(function: Function, inputs: list[Tensor], dynamic: bool) -> bool:
    """Whether PyTorch's operator stands in the graph, whose result is the function's.

    dynamic: whether the first dim of each input may vary.
    """
    inputs = [x.clone() for x in inputs]
    graphs: list[fx.GraphModule] = []

    def compiled(module: fx.GraphModule, _: Any) -> Any:
        joint_graph_passes(module)
        graphs.append(module)
        return make_boxed_func(module.forward)

    backend = aot_autograd(
        fw_compiler=compiled, inference_compiler=compiled, decompositions=select_decomp_table()
    )
    torch._dynamo.reset()
    for x in inputs if dynamic else ():
        torch._dynamo.maybe_mark_dynamic(x, 0)
    with torch.no_grad():
        result = torch.compile(function, backend=backend)(*inputs)
        tolerance = 2e-2 if result.dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(result, function(*inputs), rtol=tolerance, atol=tolerance)
    (graph,) = graphs
    return any("scaled_dot_product" in str(node.target) for node in graph.graph.nodes)


def attention(
    order: tuple[int, ...] = _HEADS_FIRST,
    score: Callable[..., Tensor] = lambda scores: scores / 4,
    dim: int = -1,
    keys: tuple[int, ...] = (),
    values: tuple[int, ...] = (),
) -> Function:
    """The order of dims that queries, and keys and values unless they have their own, get; and the
    dim of the softmax.
    """

    def attend(query: Tensor, key: Tensor, value: Tensor, *masks: Tensor) -> Tensor:
        key = key.permute(keys or order).transpose(-2, -1)
        scores = score(query.permute(order) @ key, *masks)
        return scores.softmax(dim) @ value.permute(values or order)

    return attend


def filled(
    value: float, of: int = 0, sizes: tuple[int, ...] = (2, 1, 1, 6)
) -> Callable[[Tensor, Tensor], Tensor]:
    """Scores that the mask, seen with the sizes, says `of` for get the value."""

    def fill(scores: Tensor, mask: Tensor) -> Tensor:
        where = (mask == of).view(sizes).expand_as(scores)
        return (scores / 4).masked_fill(where, value)

    return fill


def kept(value: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Scores of later positions get the value."""

    def keep(scores: Tensor, mask: Tensor) -> Tensor:
        return torch.where(mask, scores / torch.full([], 4.0), torch.full((), value))

    return keep


def regrouped(*sizes: int, dim: int = -1, turned: tuple[int, ...] = (0, 2, 1)) -> Function:
    """Two products of batches of heads; the mask is added to scores of the sizes."""

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        shape = query.shape
        query, key, value = (x.flatten(0, 1) for x in (query, key, value))
        products = torch.bmm(query, key.permute(turned))
        scores = products.view(sizes) + mask
        return torch.bmm(scores.view(products.shape).softmax(dim), value).view(shape)

    return attend


def narrow(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    query, key, value = (x.bfloat16().transpose(1, 2) for x in (query, key, value))
    return (query @ key.transpose(-2, -1) / 4).softmax(-1) @ value


def of_itself(x: Tensor) -> Tensor:
    scores = x.transpose(1, 2) @ x.transpose(1, 2).transpose(-2, -1) / 4
    return scores.softmax(-1) @ x.transpose(1, 2)


def unscaled(scores: Tensor) -> Tensor:
    return scores


def multiplied(scores: Tensor) -> Tensor:
    return scores * 0.25


def biased(scores: Tensor, mask: Tensor) -> Tensor:
    return scores / 4 + mask


_WEIGHT = nn.Parameter(torch.tensor(3.0))
_USUAL = numbers(2, 6, 4, 16)
_LAYERS = numbers(2, 4, 6, 16)
_SQUARE = numbers(6, 6, 6, 16)
_ROWS = numbers(2, 5, 6, 4, 16)
_CUBES = numbers(2, 4, 4, 4, 16)

_FUSED: dict[str, tuple[Function, list[Tensor]]] = {
    "divided": (attention(), _USUAL),
    "multiplied": (attention(score=multiplied), _USUAL),
    "unscaled": (attention(score=unscaled), _USUAL),
    "heads in front": (attention((0, 1, 2, 3)), _USUAL),
    "mask of pairs": (attention(score=biased), [*_USUAL, *numbers(6, 6, count=1)]),
    "mask of keys": (attention(score=biased), [*_USUAL, *numbers(2, 1, 1, 6, count=1)]),
    "filled": (attention(score=filled(-math.inf)), [*_USUAL, _KEYS]),
    "groups": (regrouped(2, 4, 6, 6), [*_LAYERS, *numbers(2, 1, 6, 6, count=1)]),
    "bfloat16": (narrow, _USUAL),
    "of itself": (of_itself, _USUAL[:1]),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", _FUSED)
def test_usual_attention(name: str, dynamic: bool) -> None:
    assert is_fused(*_FUSED[name], dynamic)


# What Inductor's own patterns take for the usual attention.
_OTHER: dict[str, tuple[Function, list[Tensor]]] = {
    "between batches": (attention((2, 0, 1, 3)), _USUAL),
    "between batches, unscaled": (attention((1, 2, 0, 3), unscaled), _SQUARE),
    "batch second, unscaled": (attention((1, 0, 2, 3), unscaled), _SQUARE),
    "heads in front, unscaled": (attention((0, 1, 2, 3), unscaled), _USUAL),
    "between channels": (attention((0, 2, 3, 1)), numbers(2, 6, 4, 6)),
    "turned twice": (attention((0, 3, 1, 2)), numbers(2, 6, 16, 4)),
    "of rows": (attention((0, 1, 3, 2, 4)), _ROWS),
    "of columns": (attention((0, 2, 3, 1, 4)), _ROWS),
    "of rows of equal sizes": (attention((0, 1, 3, 2, 4)), _CUBES),
    "of rows, unscaled": (attention((0, 1, 3, 2, 4), unscaled), _ROWS),
    "of rows with a mask": (
        attention((0, 1, 3, 2, 4), biased),
        [*_ROWS, *numbers(2, 1, 4, 6, 6, count=1)],
    ),
    "keys of other batches": (
        regrouped(2, 3, 6, 6, turned=(1, 2, 0)),
        [*numbers(2, 3, 6, 6), *numbers(2, 1, 6, 6, count=1)],
    ),
    "queries and values of other batches": (attention((2, 0, 1, 3), keys=_HEADS_FIRST), _SQUARE),
    "other keys": (attention(keys=(2, 0, 1, 3)), _SQUARE),
    "other values": (attention(values=(2, 0, 1, 3)), _SQUARE),
    "softmax of queries": (attention(dim=-2), _USUAL),
    "softmax of queries, multiplied": (attention((0, 1, 2, 3), multiplied, -2), _USUAL),
    "softmax of heads": (attention(dim=1), _USUAL),
    "softmax of queries in groups": (
        regrouped(2, 4, 6, 6, dim=1),
        [*_LAYERS, *numbers(2, 1, 6, 6, count=1)],
    ),
    "other groups": (regrouped(4, 2, 6, 6), [*_LAYERS, *numbers(4, 1, 6, 6, count=1)]),
    "other positions": (regrouped(2, 4, 4, 9), [*_LAYERS, *numbers(2, 1, 4, 9, count=1)]),
    "scaled by a weight": (
        attention((0, 1, 2, 3), lambda scores, mask: scores / _WEIGHT + mask),
        [*_LAYERS, *numbers(6, 6, count=1)],
    ),
    "filled where one": (attention(score=filled(-math.inf, of=1)), [*_USUAL, _KEYS]),
    "filled for queries": (
        attention(score=filled(-math.inf, sizes=(1, 1, 2, 6))),
        [*numbers(2, 2, 4, 16, count=1), *_USUAL[1:], _KEYS],
    ),
    "filled with zeros": (attention(score=filled(0.0)), [*_USUAL, _KEYS]),
    "filled, a row without keys": (attention(score=filled(-1e9)), [*_USUAL, _NO_KEY]),
    "later ones small": (attention(score=kept(-1.0)), [*_USUAL, _EARLIER]),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", _OTHER)
def test_other_attention(name: str, dynamic: bool) -> None:
    assert not is_fused(*_OTHER[name], dynamic)
