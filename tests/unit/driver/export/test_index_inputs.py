"""Inputs that are indices: the values that the program takes are part of the manifest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from aoti_driver.export.index_inputs import Range, possible_values
from torch import Tensor, nn
from torch.export import Dim

N = Dim("n", min=8, max=64)


class Program(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 4)
        self.small = nn.Embedding(9, 4)
        self.function = function

    def forward(self, i: Tensor, x: Tensor) -> Tensor:
        return self.function(self, i, x)


def values(
    function: Callable[..., Tensor], dtype: torch.dtype = torch.int64, shape: tuple[int, ...] = (6,)
) -> tuple[int, int] | None:
    args = torch.ones(shape, dtype=dtype), torch.randn(9, 7)
    with torch.no_grad():
        ep = torch.export.export(Program(function), args, dynamic_shapes={"i": None, "x": {0: N}})
    found = possible_values(ep)
    assert set(found) <= {"i"}
    return (found["i"].low, found["i"].high) if found else None


def test_embedding_takes_what_it_has() -> None:
    assert values(lambda m, i, x: m.table(i)) == (0, 49)
    assert values(lambda m, i, x: m.table(i) @ m.small(i).t()) == (0, 8)
    assert values(lambda m, i, x: m.table(i[None].expand(1, 6)[0].long() + 0)) is None
    assert values(lambda m, i, x: m.table(i.view(2, 3).t()[None].contiguous())) == (0, 49)
    assert values(lambda m, i, x: m.table(i.long()), torch.int32) == (0, 49)
    assert values(lambda m, i, x: m.table(i.long()), torch.uint8) == (0, 49)


def test_indexing_counts_from_the_end_too() -> None:
    assert values(lambda m, i, x: m.table.weight[i]) == (-50, 49)
    assert values(lambda m, i, x: x[:, i]) == (-7, 6)
    assert values(lambda m, i, x: m.table.weight[i, i % 4]) == (-50, 49)
    assert values(lambda m, i, x: torch.index_put(m.table.weight, (i,), x[0, 0])) == (-50, 49)


def test_operators_along_a_dim() -> None:
    assert values(lambda m, i, x: m.table.weight.gather(0, i[:, None])) == (0, 49)
    assert values(lambda m, i, x: x.index_select(-1, i)) == (0, 6)
    assert values(lambda m, i, x: m.small.weight.new_zeros(9).scatter(0, i, 1.0)) == (0, 8)
    assert values(lambda m, i, x: torch.zeros(9).index_add(0, i, torch.ones(6))) == (0, 8)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, i, x: x[i],  # how many there are is only known at run time
        lambda m, i, x: m.table(i[:3]),  # the other elements may be anything
        lambda m, i, x: m.table(i.clamp(0, 9)),
        lambda m, i, x: m.table(i % 50),
        lambda m, i, x: m.table(i.int().long()),  # loses what doesn't fit
        lambda m, i, x: torch.where(i < 50, i, 0) + 1,
        lambda m, i, x: nn.functional.cross_entropy(x[:6].repeat(6, 1)[:6], i, ignore_index=99),
        lambda m, i, x: torch.cond(x.sum() > 0, lambda: m.table(i).sum(), lambda: x.sum(), ()),
    ],
)
def test_what_says_nothing(function: Callable[..., Tensor]) -> None:
    assert values(function) is None


def test_masks_are_no_indices() -> None:
    assert values(lambda m, i, x: m.table.weight[:6][i.bool()], torch.uint8) is None
    assert values(lambda m, i, x: x[:6, 0][i.to(torch.uint8) > 0]) is None


def test_ranges_meet() -> None:
    assert Range(-5, 4) & Range(0, 9) == Range(0, 4)
