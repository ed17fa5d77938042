"""Products whose number of rows varies have several kernels, and tuning files choose their tiles.
Needs Triton.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.tiles import Tile
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

BATCH = torch.export.Dim("batch", min=1, max=500)


class Mixed(nn.Module):
    """A product with something fused into it, one of a batch, and a convolution."""

    weights: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(24, 16)
        self.convolution = nn.Conv2d(3, 8, 3)
        self.register_buffer("weights", torch.randn(2, 16, 8))

    def forward(self, x: Tensor, image: Tensor) -> tuple[Tensor, ...]:
        y = self.linear(x).relu()
        return y, torch.bmm(y.expand(2, -1, -1), self.weights), self.convolution(image)


def kernel_of_rows(wrapper: str) -> list[str]:
    """For each launch, the expression of the kernel's number."""
    return re.findall(r"launchKernel\((.*?), grid_0, grid_1, grid_2, ", wrapper)


def grids_of_rows(wrapper: str) -> list[str]:
    return re.findall(r"grid_0 = (.*_rows.*);", wrapper)


def test_several_kernels_of_a_product(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Mixed().eval().requires_grad_(False)
    inputs = (torch.randn(5, 24), torch.randn(5, 3, 4, 4))
    harness.freeze(tmp_path, module, inputs, shapes=({0: BATCH}, {0: BATCH}))
    cuda = harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80",)).codegen.cuda
    assert cuda is not None
    assert cuda.kernels == 6
    few, many = Tile(16, 16, 32, 3, 1, rows=16), Tile(64, 16, 32, 3, 4)
    products = {product.key.partition(" ")[0]: product for product in cuda.products}
    assert {name: p.tiles for name, p in products.items() if name != "bmm"} == {
        "mm": (few, many),
        # One tap after the other, of 3 channels each.
        "convolution": tuple(dataclasses.replace(tile, k=16) for tile in (few, many)),
    }
    # K has 16 elements.
    assert [tile.k for tile in products["bmm"].tiles] == [16, 16]
    assert "mm [1..500, 16, 24] float32" in {product.key for product in cuda.products}
    assert "bmm 2 x [1..500, 8, 16] float32" in {product.key for product in cuda.products}

    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    numbers = kernel_of_rows(wrapper)
    assert sorted(numbers) == [f"(_rows <= 16 ? {n} : {n + 1})" for n in (0, 2, 4)]
    assert grids_of_rows(wrapper) == ["(_rows <= 16 ? _grid_0 : _grid_3)"] * 3
    # The kernels' threads are those of the tiles, in the order of their numbers.
    threads = re.findall(r"\{80, false, \d+, \d+, \d+, (\d+)\}", wrapper)
    assert threads == ["32", "128"] * 3


def linear(folder: Path, rows: Any = BATCH) -> Path:
    torch.manual_seed(0)
    module = nn.Linear(24, 16).requires_grad_(False)
    harness.freeze(folder, module, (torch.randn(5, 24),), shapes={"input": {0: rows}})
    return folder


def tuning(folder: Path, key: str, *tiles: dict[str, int]) -> Path:
    path = folder / "m.tuning.json"
    measured = {"gpu": "one", "products": {key: list(tiles)}}
    path.write_text(json.dumps({"format": 1, "archs": {"sm_80": measured}}), encoding="utf-8")
    return path


KEY = "addmm [1..500, 16, 24] float32"
TILES = (
    {"m": 32, "n": 16, "k": 16, "stages": 2, "warps": 2, "rows": 40},
    {"m": 128, "n": 16, "k": 16, "stages": 2, "warps": 8},
)


def test_a_tuning_file(tmp_path: Path) -> None:
    linear(tmp_path)
    path = tuning(tmp_path, KEY, *TILES)
    cuda = harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80",), tuning=path).codegen.cuda
    assert cuda is not None
    (product,) = cuda.products
    assert product.tuned
    assert product.tiles == (Tile(32, 16, 16, 2, 2, rows=40), Tile(128, 16, 16, 2, 8))
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert kernel_of_rows(wrapper) == ["(_rows <= 40 ? 0 : 1)"]
    assert re.findall(r"\{80, false, \d+, \d+, \d+, (\d+)\}", wrapper) == ["64", "256"]


def test_a_product_that_the_file_does_not_name(tmp_path: Path) -> None:
    """Another model's file is no reason to build something that nobody asked for."""
    linear(tmp_path)
    path = tuning(tmp_path, "addmm [1..500, 16, 25] float32", *TILES)
    expected = re.escape(
        'm.tuning.json: sm_80: "addmm [1..500, 16, 25] float32" is no product of this model (did '
        f'you mean "{KEY}"?); its products are {KEY}. Is the file another model\'s, or has the '
        "model changed since?"
    )
    with pytest.raises(DriverError, match=expected):
        harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80",), tuning=path)


def test_a_tile_that_needs_more_shared_memory_than_there_is(tmp_path: Path) -> None:
    linear(tmp_path)
    large = {"m": 256, "n": 256, "k": 64, "stages": 4, "warps": 8}
    path = tuning(tmp_path, KEY, large)
    expected = (
        rf"m.tuning.json: sm_80: {re.escape(KEY)}\[0\]: a block of 256x256x64 \(4 stages, 8 warps\)"
        r" needs 393216 bytes of shared memory, and sm_86 has 101376; use a smaller tile or fewer "
        r"stages, or leave sm_86 out of cuda_archs"
    )
    with pytest.raises(DriverError, match=expected):
        harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80", "sm_86"), tuning=path)
