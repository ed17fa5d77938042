"""Generated kernels: threads, indices out of range, and division by zero."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from tests.unit.driver.inductor import harness
from tests.unit.driver.inductor.harness import Compiled


class Loops(nn.Module):
    """Loop nests of all kinds, large enough for several threads."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        total = x.sum(), x.std(), x.argmax(), x.amin(), x.prod() == 0
        rows = x.softmax(-1), x.sum(-1), x.transpose(1, 2).contiguous() + 1
        scattered = torch.zeros(7).index_add(0, torch.arange(x.shape[0]) % 7, x[:, 0, 0])
        mixed = x.double().mean((0, 1)), (x > 0).to(torch.uint8) * 3
        return *total, *rows, scattered, *mixed


class Lookup(nn.Module):
    """Indices: of rows, of elements (vectors of them), from the end, behind a mask, and of a part
    of a tensor, whose sign torch knows or not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 64)

    def forward(
        self, tokens: Tensor, places: Tensor, mask: Tensor, row: Tensor
    ) -> tuple[Tensor, ...]:
        flat = self.table.weight[:100, 0]
        guarded = torch.where(mask, flat[places.clamp(-100, 99)], 0.0)
        place: Any = row.abs().item()
        torch._check(place >= 0)  # type: ignore[no-untyped-call]
        part = self.table.weight[row] + self.table.weight[:100].select(0, place)
        return self.table(tokens), flat[places], guarded, part


class Divide(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x // y, x % y, torch.fmod(x, y)


def _models() -> dict[str, tuple[nn.Module, tuple[Any, ...], Any]]:
    torch.manual_seed(0)
    rows, count = Dim("rows", min=1, max=5000), Dim("count", min=1, max=100000)
    tokens = torch.zeros(9, dtype=torch.int64)
    every = {0: count}
    return {
        "loops": (Loops(), (torch.randn(5, 33, 70),), {"x": {0: rows}}),
        "lookup": (
            Lookup().eval(),
            (tokens, tokens.clone(), tokens > 0, torch.tensor(3)),
            {"tokens": every, "places": every, "mask": every, "row": None},
        ),
        "divide": (Divide(), (tokens, tokens + 1), {"x": every, "y": every}),
    }


@pytest.fixture(scope="module", params=["x86-64", harness.ISA])
def compiled(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Compiled]]:
    root = tmp_path_factory.mktemp("kernels")
    library = harness.build_programs(root, _models(), request.param)
    for name in _models():
        text = harness.kernels(root / name)
        assert "omp" not in text and "integer_div_error" not in text
        assert "AOTI_TORCH_CHECK" not in text
    library.set_cpus(4)
    yield lambda name: Compiled(library, name, root / name)


def test_loops_on_several_threads(compiled: Callable[[str], Compiled]) -> None:
    run, eager = compiled("loops"), Loops()
    for rows in (1, 2, 64, 1000):
        x = torch.randn(rows, 33, 70)
        torch.testing.assert_close(run(x), list(eager(x)), rtol=1e-4, atol=1e-3)
        again = [run(x) for _ in range(3)]
        torch.testing.assert_close(again[0], again[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 13, 50000])
def test_index_out_of_range(compiled: Callable[[str], Compiled], count: int) -> None:
    run, eager = compiled("lookup"), _models()["lookup"][0]
    assert isinstance(eager, Lookup)
    zeros = torch.zeros(count, dtype=torch.int64)
    mask = zeros == 0
    tokens, places = torch.randint(0, 1000, (count,)), torch.randint(-100, 100, (count,))
    row = torch.tensor(-5)
    with torch.no_grad():
        torch.testing.assert_close(
            run(tokens, places, mask, row)[1::2],
            [eager.table.weight[:100, 0][places], eager.table.weight[[-5, 5]].sum(0)],
        )
    for bad in (1000, -1, 2**40, -(2**40)):
        wrong = zeros.clone()
        wrong[-1] = bad
        with pytest.raises(RuntimeError, match=f"^index {bad} is out of range 0..999$"):
            run(wrong, zeros, mask, row)
    for bad in (100, -101, 2**40, -(2**40)):
        wrong = zeros.clone()
        wrong[count // 2] = bad
        with pytest.raises(RuntimeError, match=f"^index {bad} is out of range -100..99$"):
            run(zeros, wrong, mask, row)
    for bad in (1000, -1001, 2**40, -(2**40)):
        with pytest.raises(RuntimeError, match=f"^index {bad} is out of range -1000..999$"):
            run(zeros, zeros, mask, torch.tensor(bad))
    with pytest.raises(RuntimeError, match=r"^index 100 is out of range -100..99$"):
        run(zeros, zeros, mask, torch.tensor(-100))
    assert len(run(tokens, places, mask, row)) == 4


def test_division_by_zero_is_the_error_of_that_call(compiled: Callable[[str], Compiled]) -> None:
    x = torch.arange(100000) - 50000
    good = torch.arange(100000) % 7 + 1
    bad = good.clone()
    bad[-3] = 0
    expected = list(Divide()(x, good))

    def call(run: Compiled, y: Tensor) -> str | None:
        for _ in range(40):
            try:
                torch.testing.assert_close(run(x, y), expected)
            except RuntimeError as e:
                if y is good:
                    return f"wrong error: {e}"
                assert str(e) == "ZeroDivisionError"
            else:
                if y is bad:
                    return "no error"
        return None

    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(call, compiled("divide"), y) for y in (good, bad, good, bad)]
        assert [run.result() for run in runs] == [None] * 4


def test_only_work_that_is_worth_it_is_shared(tmp_path: Path) -> None:
    class Small(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    harness.freeze(tmp_path, Small(), (torch.randn(4, 6),), {}, {"x": {0: Dim("n", max=10**6)}})
    harness.generate(tmp_path, "s")
    text = harness.kernels(tmp_path)
    assert re.search(r"ThreadsFor\(.*ks0.*, [\d.]+ \* static_cast<double>\(.*ks0.*\)\);", text)


def test_work_in_steps_of_a_row_takes_longer(tmp_path: Path) -> None:
    """Of two copies of the same size, one changes the order in memory."""

    class Copy(nn.Module):
        def __init__(self, transposed: bool) -> None:
            super().__init__()
            self.transposed = transposed

        def forward(self, x: Tensor) -> Tensor:
            return (x.transpose(1, 2) if self.transposed else x).contiguous() + 1

    def nanoseconds(transposed: bool) -> float:
        """For each element."""
        folder = tmp_path / str(transposed)
        folder.mkdir()
        x = torch.randn(4, 64, 64)
        harness.freeze(folder, Copy(transposed), (x,), {}, {"x": {0: Dim("n", max=64)}})
        harness.generate(folder, "c")
        (found,) = re.findall(r"ThreadsFor\(.*, ([\d.e-]+) \*", harness.kernels(folder))
        return float(found)

    assert nanoseconds(True) > nanoseconds(False) + 0.2
