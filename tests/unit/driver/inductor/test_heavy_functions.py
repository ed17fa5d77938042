"""Loops that read what a costly function gives don't call it again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

FUNCTIONS = [
    "acos",
    "acosh",
    "asin",
    "atan",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "expm1",
    "lgamma",
    "sin",
    "sinh",
    "tan",
]
# What the generated code calls, where that isn't the function itself.
CALLS = {"expm1": "exp("}


class Readers(nn.Module):
    """Loops over other sizes than the function's, as those of layers over heads."""

    def __init__(self, function: str, readers: int) -> None:
        super().__init__()
        self.function = getattr(torch, function)
        self.readers = readers

    def forward(self, places: Tensor, heads: Tensor) -> list[Tensor]:
        turned = self.function(places)
        return [(heads + i) * turned.roll(i, 1) for i in range(self.readers)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_called_once(tmp_path: Path, function: str) -> None:
    counts = []
    for readers in (1, 3):
        folder = tmp_path / f"{function}_{readers}"
        inputs = (torch.rand(16, 32), torch.rand(4, 16, 32))
        harness.freeze(folder, Readers(function, readers), inputs)
        harness.generate(folder, folder.name)
        counts.append(harness.kernels(folder).count(CALLS.get(function, f"{function}(")))
    assert 0 < counts[1] <= counts[0]


class Windows(nn.Module):
    """Scores of windows, with biases that a table has for the distance of two places."""

    far: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(31, 2))
        places = torch.arange(16)
        self.register_buffer("far", places[:, None] - places + 15)

    def forward(self, scores: Tensor) -> Tensor:
        biases = self.table[self.far.view(-1)].view(16, 16, 2).permute(2, 0, 1)
        return torch.relu(scores + biases[None])


def test_tables_are_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "windows"
    harness.freeze(folder, Windows(), (torch.rand(8, 2, 16, 16),))
    harness.generate(folder, "windows")
    reads = [k for k in harness.kernels(folder).split("extern") if "const int64_t* in_ptr" in k]
    (kernel,) = reads
    # The scores' loop has no indices: it is another one, behind the table's.
    assert "relu" in kernel and kernel.count("::aoti::kernel::Parallel(") == 2
