"""Additions to places that an index tensor names: in the order of the loop, on any number of
threads.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sympy
import torch
from aoti_driver.inductor import ordered_additions
from torch import Tensor, nn
from torch.export import Dim

from tests.unit.driver.inductor import harness
from tests.unit.driver.inductor.harness import Compiled

TYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.uint8,
)
PLACES = 7  # few, so that most additions go where others went


class Rows(nn.Module):
    """Rows of all types, the same in a kernel that computes more, and a row of single elements."""

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        results = []
        for dtype in TYPES:
            values = x.to(dtype)
            sums = torch.zeros(PLACES, x.shape[1], dtype=dtype)
            results.append(sums.index_put((i,), values, accumulate=True))
        single = torch.zeros(PLACES).index_add(0, i, x[:, 0])
        half = torch.zeros(PLACES, dtype=torch.float16)
        halves = half.index_put((i,), x[:, 1].half(), accumulate=True)
        fused = torch.zeros(PLACES, x.shape[1]).index_add(0, i, x * 0.3), x * 0.3 - 1
        return *results, single, halves, *fused


class Shapes(nn.Module):
    """Other shapes: with a batch, of a size that varies in the last dim, of columns, of several
    indices, of and next to sums along a dim, and of a transposed tensor.
    """

    def forward(self, x: Tensor, i: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        batch = torch.zeros(y.shape[0], PLACES, 40).index_add(1, i, y)
        last = torch.zeros(PLACES, 40, y.shape[0]).index_add(0, i, y.permute(1, 2, 0))
        columns = torch.zeros(x.shape[0], PLACES).index_add(1, i[:128], x)
        two = torch.zeros(5, PLACES, 40).index_put((i % 5, i), x[:, :40], accumulate=True)
        soft = torch.zeros(PLACES, 128).index_add(0, i, x.softmax(-1))
        sums = torch.zeros(PLACES).index_add(0, i, x.sum(-1))
        tiled = torch.zeros(PLACES, x.shape[0]).index_add(0, i[:40], y[0].t() + z)
        return batch, last, columns, two, soft, sums, tiled


def _inputs(count: int) -> tuple[Tensor, ...]:
    torch.manual_seed(count)
    x = torch.randn(count, 128) * 5
    i = torch.randint(0, PLACES, (count,))
    return x, i, torch.randn(6, count, 40), torch.randn(40, count)


def _models() -> dict[str, tuple[nn.Module, tuple[Tensor, ...], Any]]:
    x, i, y, z = _inputs(300)
    count, batch = Dim("count", min=128, max=100000), Dim("batch", min=1, max=100)
    shapes = {"x": {0: count}, "i": {0: count}}
    varying = {**shapes, "y": {0: batch, 1: count}, "z": {1: count}}
    return {
        "rows": (Rows(), (x, i), shapes),
        "shapes": (Shapes(), (x, i, y, z), varying),
    }


@pytest.fixture(scope="module", params=["x86-64", harness.ISA])
def programs(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str, int], Compiled]]:
    root = tmp_path_factory.mktemp("additions")
    library = harness.build_programs(root, _models(), request.param)
    for name in _models():
        text = harness.kernels(root / name)
        assert "atomic_add" not in text
        # Compilers would make vectors of several additions, which may be to the same place.
        nests = [nest for nest in re.split(r"^    \{$", text, flags=re.M) if _ADDITION.search(nest)]
        assert not any("#pragma GCC ivdep" in nest for nest in nests)
        assert any("Parallel(" in nest for nest in nests), "rows are split by their columns"

    def program(name: str, cpus: int) -> Compiled:
        library.set_cpus(cpus)
        return Compiled(library, name, root / name)

    yield program


_ADDITION = re.compile(r"out_ptr\d+\[.*\] \+= |loadu\((out_ptr\d+ \+ .*)\)\)\.store\(\1")


@pytest.mark.parametrize("name", ["rows", "shapes"])
def test_all_numbers_of_threads_give_the_same_bits(
    programs: Callable[[str, int], Compiled], name: str
) -> None:
    module, args, _ = _models()[name]
    for count in (128, 131, 5000):
        inputs = _inputs(count)[: len(args)]
        alone = programs(name, 1)(*inputs)
        torch.testing.assert_close(alone, list(module(*inputs)), rtol=2e-2, atol=1e-1)
        several = programs(name, 4)
        for _ in range(3):
            for result, expected in zip(several(*inputs), alone, strict=True):
                assert torch.equal(result, expected)


def test_sums_are_those_of_one_addition_after_the_other(
    programs: Callable[[str, int], Compiled],
) -> None:
    x, i, *_ = _inputs(5000)
    results = programs("rows", 4)(x, i)
    for dtype, result in zip(TYPES, results, strict=False):
        sums = torch.zeros(PLACES, 128, dtype=dtype)
        for place, row in zip(i.tolist(), x.to(dtype), strict=True):
            sums[place] += row
        assert torch.equal(result, sums)


def test_loops_that_may_be_split() -> None:
    symbols: Any = importlib.import_module("torch.utils._sympy.symbol")
    functions: Any = importlib.import_module("torch.utils._sympy.functions")
    make, kind = symbols.make_symbol, symbols.SymT
    x0, x1, x2 = (make(kind.XBLOCK, n, integer=True, nonnegative=True) for n in range(3))
    place, other = (make(kind.TMP, n, integer=True) for n in range(2))
    size, maybe_empty = (
        make(kind.SIZE, 0, integer=True, positive=True),
        make(kind.SIZE, 1, integer=True, nonnegative=True),
    )

    def split(index: Any, *steps: Any) -> list[Any]:
        ranges = dict(zip((x0, x1, x2), map(sympy.sympify, steps), strict=False))
        return [v for v in ranges if ordered_additions.places_differ(index, v, ranges)]

    assert split(128 * place + x1, 9, 128) == [x1]
    assert split(128 * place + x1 + 5, 9, 100) == [x1]
    assert split(128 * place + x1, 9, 129) == []
    assert split(128 * place + 2 * x1, 9, 64) == [x1]
    assert split(128 * place + 2 * x1, 9, 65) == []
    assert split(128 * place - x1, 9, 128) == []
    assert split(place, 9) == [] and split(place + x0, 9) == []
    assert split(128 * x0 + place, 9, 128) == []
    assert split(128 * place + 200 * other + x1, 9, 128) == []
    assert split(128 * place + 200 * other + x1, 9, 8) == [x1]
    assert split(60 * place + 10 * x1 + x2, 9, 6, 10) == [x1, x2]
    assert split(60 * place + 10 * x1 + x2, 9, 6, 11) == []
    assert split(60 * place + 10 * x1 + x2, 9, 7, 10) == [x2]
    assert split(size * place + x1, 9, size) == [x1]
    assert split(size * place + x1, 9, size + 1) == []
    assert split(7 * size * place + size * x1 + x2, 9, 7, size) == [x1, x2]
    assert split(maybe_empty * x1 + 7 * maybe_empty * place, 9, 7) == []
    assert split(64 * place + functions.FloorDiv(x1, 2), 9, 128) == []
    assert split(5 * place + functions.ModularIndexing(x1, 1, 5), 9, 128) == []
