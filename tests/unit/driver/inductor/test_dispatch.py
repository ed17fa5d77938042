"""Operators without C functions: compiled code calls them through PyTorch's dispatcher."""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.artifacts import package
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import CodeManifest
from aoti_driver.contract.manifest_file import read_manifest
from torch import Tensor, nn

from tests.unit.driver.inductor import harness, models


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of all these operators: its sources, program.so, and lib.so for a package."""
    root = tmp_path_factory.mktemp("operators")
    harness.load_operators(root)
    module, args, kwargs, shapes = models.operators()
    harness.freeze(root, module, args, kwargs, shapes)
    harness.generate(root, "operators")
    (root / "tables.cpp").write_text(harness.tables_source(["operators"]), encoding="utf-8")
    sources = [root / "tables.cpp", *harness.sources(root)]
    tables, wrapper, *kernels = harness.compile_sources(sources)
    threads, openmp = harness.compile_threads(root)
    harness.link([wrapper, *kernels, tables, threads], root / "program.so")
    harness.link([*harness.compile_for_stock(root), *kernels, openmp], root / "lib.so")
    return root


def _check(run: Callable[..., Any]) -> None:
    eager, *_ = models.operators()
    for batch in (2, 5, 9):
        x = torch.randn(batch, 4, 4)
        notes = torch.zeros(48), torch.zeros(48)
        with torch.no_grad():
            torch.manual_seed(7)
            expected = eager(x, notes[0])
        torch.manual_seed(7)
        got = run(x.clone(), notes[1])
        assert len(expected) == len(got) == 10
        for one, other in zip(got, expected, strict=True):
            assert not one.is_conj(), "the memory holds other numbers than the tensor"
            torch.testing.assert_close(one, other.resolve_conj())
        assert notes[0].count_nonzero() > 10
        torch.testing.assert_close(notes[1], notes[0])


def test_program(folder: Path) -> None:
    library = ctypes.CDLL(str(folder / "program.so"))
    _check(harness.Compiled(library, "operators", folder))


def _load_package(folder: Path, tmp_path: Path) -> Callable[..., list[Tensor]]:
    arguments = argparse.ArgumentParser()
    package.add_package_arguments(arguments)
    package.run_package(
        arguments.parse_args(
            [
                f"--lib={folder / 'lib.so'}",
                f"--weights={folder / 'weights.safetensors'}",
                f"--manifest={harness.choose_shim(folder, 'libtorch')}",
                f"--graph={folder / 'graph.json'}",
                f"--out={tmp_path / 'x.pt2'}",
            ]
        )
    )
    path = str(tmp_path / "x.pt2")
    loader = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
    return lambda *inputs: loader.boxed_run(list(inputs))


def test_stock_package(folder: Path, tmp_path: Path) -> None:
    _check(_load_package(folder, tmp_path))


def test_operators_own_error(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = _load_package(folder, tmp_path)
    with pytest.raises(RuntimeError):
        run(torch.full((2, 4, 4), torch.nan), torch.zeros(48))
    assert re.search(
        "aten::(multinomial: probability|_linalg_check_errors: )", capfd.readouterr().err
    )


def test_no_reference_is_lost(folder: Path) -> None:
    library = ctypes.CDLL(str(folder / "program.so"))
    compiled = harness.Compiled(library, "operators", folder)
    compiled(torch.randn(5, 4, 4), torch.zeros(48))
    basis = next(c for c in compiled.constants if c.shape == (4, 4))
    x, notes = torch.randn(5, 4, 4), torch.zeros(48)
    counts = [t._use_count() for t in (basis, x, notes)]  # type: ignore[attr-defined]
    for _ in range(3):
        compiled(x, notes)
    assert [t._use_count() for t in (basis, x, notes)] == counts  # type: ignore[attr-defined]


def test_no_proxy_executor(folder: Path) -> None:
    text = (folder / "wrapper.cpp").read_text(encoding="utf-8")
    assert "aoti_torch_proxy_executor" not in text
    manifest = read_manifest(folder / "compiled.json", CodeManifest)
    assert "aoti_torch_call_dispatcher" in {shim.name for shim in manifest.codegen.shims}


def test_same_bytes(folder: Path, tmp_path: Path) -> None:
    module, args, kwargs, shapes = models.operators()
    harness.freeze(tmp_path, module, args, kwargs, shapes)
    harness.generate(tmp_path, "operators")
    for name in ("graph.json", "wrapper.cpp", "kernels/kernels_0.cpp", "compiled.json"):
        one, two = (hashlib.sha256((f / name).read_bytes()) for f in (folder, tmp_path))
        assert one.hexdigest() == two.hexdigest(), name


def _refused(tmp_path: Path, module: nn.Module, reason: str) -> None:
    harness.freeze(tmp_path, module, (torch.randn(2, 8),))
    with pytest.raises(DriverError, match=reason):
        harness.generate(tmp_path, "m")
    assert not list(tmp_path.glob("*.cpp"))


def test_operator_in_python(tmp_path: Path) -> None:
    @torch.library.custom_op("aoti_codegen_test_py::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Twice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            doubled: Tensor = twice(x)
            return doubled

    _refused(
        tmp_path,
        Twice(),
        r"(?s)//pkg:model: .*aoti_codegen_test_py::twice: .* in Python.*custom_ops: "
        r"docs/custom_ops.md",
    )


def test_argument_that_does_not_fit(tmp_path: Path, folder: Path) -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            scaled: Tensor = torch.ops.aoti_codegen_test.scaled(x, 2.5)
            return scaled

    _refused(
        tmp_path,
        Scaled(),
        r'(?s)//pkg:model: .*aoti_codegen_test::scaled: its argument "by" of type number',
    )


def test_results_that_torch_mixes_up(tmp_path: Path, folder: Path) -> None:
    class Mixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            first, (second,) = torch.ops.aoti_codegen_test.mixed(x)
            total: Tensor = first + second
            return total

    _refused(tmp_path, Mixed(), r"aoti_codegen_test::mixed: it returns Tensor, List\[Tensor\]")
