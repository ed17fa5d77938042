"""Code for GPUs, generated and compiled on a machine without one. Needs Triton."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.code_parts import CudaCode
from aoti_driver.contract.tiles import ProductTiles, Tile
from aoti_driver.cuda import kernels, sort_limits
from aoti_driver.torch_internals import cuda_changes, patching
from torch import Tensor, nn

from tests.cuda import operator_cases
from tests.unit.driver.cuda import operator_page
from tests.unit.driver.inductor import harness

ROOT = Path(__file__).parents[4]


class Everything(nn.Module):
    """Products, one of them with rows that vary, a convolution, lookups, scatters, a constant made
    on the device, attention, a number that varies; weights of one shape.
    """

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3)
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.third = nn.Linear(4, 8)

    def forward(self, x: Tensor, table: Tensor, places: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        pooled = self.convolution(x).relu().mean((2, 3))
        y = self.second(self.first(pooled)[None, None])
        z = y.bfloat16()
        twos = torch.full((4, 8), 2.0, device=x.device)
        # Of five dims, for which cuda/attention.py leaves it to Inductor.
        w = z[None]
        attended = nn.functional.scaled_dot_product_attention(w, w, w, is_causal=True)
        # Scatters: the largest elements, sums of integers, and a store of bfloat16.
        to = places[:5].unsqueeze(-1).expand(5, 8)
        largest = twos.scatter_reduce(0, to, pooled, "amax")
        counts = places.index_put((places,), places, accumulate=True)
        stored = z[0, 0].scatter(0, to, z[0, 0])
        # A constant as an operand, and the sum of two products.
        unit = self.second(torch.zeros((2, 8), device=x.device))
        both = twos @ self.first.weight + pooled[:4] @ self.second.weight
        results = table[places] * step.item(), twos * pooled[:4], attended, self.third(table)
        return *results, largest, counts, stored, unit, both


def program(folder: Path) -> Path:
    torch.manual_seed(0)
    module = Everything().eval().requires_grad_(False)
    places, step = torch.zeros(40, dtype=torch.int64), torch.tensor(0.5, dtype=torch.float64)
    inputs = (torch.randn(5, 3, 8, 8), torch.randn(9, 4), places, step)
    rows = torch.export.Dim("rows", min=2, max=40)
    harness.freeze(folder, module, inputs, shapes=(None, {0: rows}, None, None))
    return folder


def generated(folder: Path) -> str:
    """The text of everything that is generated for one architecture."""
    harness.generate(folder, "pkg_m", cuda_archs=("sm_80",))
    names = ("wrapper.cpp", "compiled.json")
    texts = [(folder / name).read_text(encoding="utf-8") for name in names]
    return "".join([*texts, hashlib.sha256((folder / "images.bin").read_bytes()).hexdigest()])


@pytest.fixture(scope="module")
def once() -> Iterator[None]:
    """Compiles every kernel once in this module."""
    compiled: dict[tuple[str, ...], Any] = {}
    compile_binary = kernels.compile_binary

    def compile_once(tuner: Any, config: Any, meta: Any, arch: Any) -> Any:
        key = (tuner.fn.src, str(config), arch.name)
        if key not in compiled:
            compiled[key] = compile_binary(tuner, config, meta, arch)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "compile_binary", compile_once)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("cuda") / "program")


@pytest.fixture(scope="module")
def expected(folder: Path, once: None) -> str:
    return generated(folder)


@pytest.mark.parametrize(
    "change", [c for c in cuda_changes.CHANGES if c.kind == "attribute"], ids=lambda c: c.place
)
def test_it_is_needed(
    folder: Path, expected: str, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    replaced = patching.replaced

    @contextlib.contextmanager
    def without(values: Mapping[str, object]) -> Iterator[None]:
        with replaced({place: v for place, v in values.items() if place != change.place}):
            yield

    monkeypatch.setattr(patching, "replaced", without)
    with contextlib.suppress(DriverError):
        assert generated(folder) != expected


def test_only_kernels_are_called(folder: Path, expected: str) -> None:
    assert set(re.findall(r"aoti_torch_(?:cpu|cuda)_\w+(?=\()", expected)) == set()
    assert "aoti_dispatch::" not in expected
    assert "cuda_runtime" not in expected
    assert "MakeProgramVTable<::torch::aot_inductor::AOTInductorModel_pkg_m>(kKernelTable)" in (
        expected
    )


def test_weights_of_one_shape_are_told_apart(folder: Path, expected: str) -> None:
    del expected
    manifest = harness.generate(folder, "pkg_m", cuda_archs=("sm_80",))
    assert manifest.codegen.device == "cuda"
    sources = [constant.source for constant in manifest.codegen.constants]
    assert sorted(s for s in sources if s.endswith(".weight")) == [
        "convolution.weight",
        "first.weight",
        "second.weight",
        "third.weight",
    ]


def test_cubins_and_ptx(tmp_path: Path) -> None:
    torch.manual_seed(0)
    harness.freeze(tmp_path, nn.Linear(32, 16).requires_grad_(False), (torch.randn(4, 32),))
    manifest = harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80", "sm_90"))
    product = ProductTiles("addmm [4, 16, 32] float32", 0, (Tile(16, 16, 32, 3, 1),))
    assert manifest.codegen.cuda == CudaCode(("sm_80", "sm_90"), 1, (product,))
    data = (tmp_path / "images.bin").read_bytes()
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    rows = re.findall(r"\{(\d+), (true|false), (\d+), (\d+), \d+, (\d+)\},", wrapper)
    assert [(arch, ptx) for arch, ptx, *_ in rows] == [
        ("80", "false"),
        ("90", "false"),
        ("80", "true"),
    ]
    parts = [data[int(start) : int(start) + int(size)] for *_, start, size, _ in rows]
    assert [part[:4] for part in parts[:2]] == [b"\x7fELF", b"\x7fELF"]
    assert b".target sm_80" in parts[2]
    assert parts[2].endswith(b"\0")
    assert b"tf32" not in parts[2]
    assert all(int(start) % 16 == 0 for _, _, start, *_ in rows)
    assert all(int(threads) % 32 == 0 for *_, threads in rows)


def test_no_ptx_of_architectures_that_only_themselves_run(tmp_path: Path) -> None:
    harness.freeze(tmp_path, nn.ReLU(), (torch.randn(4, 32),))
    harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_90",))
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert "{90, false, " in wrapper
    assert "{90, true, " not in wrapper


_GENERATE = """
import sys
from pathlib import Path
from tests.unit.driver.inductor import harness
harness.generate(Path(sys.argv[1]), "pkg_m", cuda_archs=("sm_80",))
"""


def test_the_same_bytes_in_another_folder(tmp_path: Path) -> None:
    digests = []
    for name, seed in (("one", "1"), ("other", "2")):
        home = tmp_path / name
        torch.manual_seed(0)
        module = nn.Sequential(nn.Embedding(9, 32), nn.Linear(32, 16)).requires_grad_(False)
        harness.freeze(home / "program", module, (torch.zeros(4, dtype=torch.int64),))
        environment = {
            **os.environ,
            "HOME": str(home),
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(path for path in [str(ROOT), *sys.path] if path),
        }
        command = [sys.executable, "-c", _GENERATE, str(home / "program")]
        subprocess.run(command, check=True, env=environment, cwd=home)
        for file in ("wrapper.cpp", "images.bin", "compiled.json"):
            digests.append(hashlib.sha256((home / "program" / file).read_bytes()).hexdigest())
            assert str(tmp_path).encode() not in (home / "program" / file).read_bytes()
    assert digests[:3] == digests[3:]


class Sorted(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        largest, places = torch.topk(x, 2)
        return largest, places, x.sort(0, descending=True).values, x.kthvalue(2).values


@pytest.mark.parametrize("most", [8, 40, None])
def test_rows_of_any_known_length_are_sorted_in_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int | None
) -> None:
    """The declared upper bound of a dim counts; columns have 4 elements."""
    monkeypatch.setattr(sort_limits, "LONGEST_ROW", 8)
    monkeypatch.setattr(sort_limits, "PART", 4)
    rows = torch.export.Dim("rows", min=2, max=most)
    harness.freeze(tmp_path, Sorted(), (torch.randn(4, 5),), shapes={"x": {1: rows}})
    manifest = harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80",))
    called = {name for shim in manifest.codegen.shims for name in shim.operators}
    refused = {"aten.topk.default", "aten.kthvalue.default"} if most is None else set()
    assert called & sort_limits.SORTS.keys() == refused


class Resized(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        largest = nn.functional.adaptive_max_pool2d(x, 3, return_indices=True)
        smooth = nn.functional.interpolate(x, (5, 6), mode="bilinear", antialias=True)
        return *largest, nn.functional.adaptive_avg_pool2d(x, (2, 3)), smooth


def test_windows_of_sizes_that_vary(tmp_path: Path) -> None:
    shapes = {"x": {2: torch.export.Dim("height", min=9), 3: torch.export.Dim("width", min=9)}}
    harness.freeze(tmp_path, Resized(), (torch.randn(2, 3, 20, 30),), shapes=shapes)
    manifest = harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80",))
    assert not {name for shim in manifest.codegen.shims for name in shim.operators}


@pytest.mark.parametrize(
    "operator", ["bernoulli", "conv2d", "cumsum", "nonzero", "scatter_reduce(amax)", "sort"]
)
def test_the_table_of_operators(tmp_path: Path, operator: str) -> None:
    """Some rows of the page, of one dtype that floats and one that does not."""
    table = operator_page.words((ROOT / operator_page.PAGE).read_text(encoding="utf-8"))
    assert {name for name, _ in table} == {*operator_cases.CASES, *operator_cases.RANDOM}
    # What the page says ran is what //tests/cuda:operators_test runs.
    refused = {key for key, word in table.items() if word == "no"}
    there = {key for key, word in table.items() if word != "-"}
    assert refused == {key for key in there if operator_cases.refused(*key)}
    for dtype in ("bfloat16", "int64"):
        outcome = operator_page.outcome(operator, dtype, tmp_path / dtype)
        word = {"kernels": "yes", "-": "-"}.get(outcome, "no")
        assert table[operator, dtype] == word, outcome


def test_indices_out_of_range_are_reported(tmp_path: Path) -> None:
    class Lookup(nn.Module):
        def forward(self, table: Tensor, places: Tensor) -> Tensor:
            return table[places]

    inputs = (torch.randn(9, 4), torch.zeros(40, dtype=torch.int64))
    harness.freeze(tmp_path, Lookup(), inputs)
    harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80",))
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert "kKernels, 1, true};" in wrapper
    assert re.search(r"call_\w+\(.*, workspace_index_status, ", wrapper)
    # No assert, after which the process could not use the device.
    assert b"__assertfail" not in (tmp_path / "images.bin").read_bytes()


def test_an_operator_that_is_written_with_triton(tmp_path: Path) -> None:
    from tests.unit.driver.cuda import user_kernel

    class Gated(nn.Module):
        def forward(self, x: Tensor, gate: Tensor) -> Tensor:
            gated: Tensor = user_kernel.gate(x, gate)
            return gated + 1

    harness.freeze(tmp_path, Gated(), (torch.randn(7, 9), torch.randn(7, 9)))
    manifest = harness.generate(tmp_path, "pkg_m", cuda_archs=("sm_80", "sm_90"))
    assert manifest.codegen.cuda == CudaCode(("sm_80", "sm_90"), 2)
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert '{"gated", kImages0, 3},' in wrapper
