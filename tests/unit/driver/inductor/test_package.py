"""The archives: stock PyTorch loads them, and their bytes depend on the content alone."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import torch
from aoti_driver.artifacts import package

from tests.unit.driver.inductor import harness, models


def _package(folder: Path, out: Path) -> Path:
    arguments = argparse.ArgumentParser()
    package.add_package_arguments(arguments)
    package.run_package(
        arguments.parse_args(
            [
                f"--lib={folder / 'libodd.so'}",
                f"--weights={folder / 'weights.safetensors'}",
                f"--manifest={harness.choose_shim(folder, 'libtorch')}",
                f"--graph={folder / 'graph.json'}",
                f"--out={out}",
            ]
        )
    )
    return out


def _export_package(folder: Path, out: Path) -> Path:
    arguments = argparse.ArgumentParser()
    package.add_export_package_arguments(arguments)
    package.run_export_package(
        arguments.parse_args(
            [
                f"--weights={folder / 'weights.safetensors'}",
                f"--manifest={folder / 'manifest.json'}",
                f"--graph={folder / 'graph.json'}",
                f"--out={out}",
            ]
        )
    )
    return out


def test_stock_loader_runs_the_package(built: Path, tmp_path: Path) -> None:
    path = _package(built / "odd", tmp_path / "odd.pt2")
    loader = torch._C._aoti.AOTIModelPackageLoader(str(path), "model", False, 1, -1)
    eager, *_ = models.odd()
    for n in (2, 6):
        x = torch.randn(n, 4)
        with torch.no_grad():
            expected = eager(x)
        got = loader.boxed_run([x.clone()])
        assert len(got) == len(expected)
        for (name, value), result in zip(expected.items(), got):
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close({name: result}, {name: value})
    in_spec, out_spec = loader.get_call_spec()
    assert "unused" in in_spec and "positive" in out_spec


def test_stock_export_load(built: Path, tmp_path: Path) -> None:
    path = _export_package(built / "odd", tmp_path / "odd.export.pt2")
    loaded = torch.export.load(path)
    program = loaded.module()
    eager, *_ = models.odd()
    for n in (2, 6, 16):
        x = torch.randn(n, 4)
        with torch.no_grad():
            torch.testing.assert_close(program(x, unused=None), eager(x))
    first, second = (loaded.state_dict[f"{n}.weight"] for n in ("first", "second"))
    assert first.data_ptr() == second.data_ptr()


def test_archives_are_normalised(built: Path, tmp_path: Path) -> None:
    for make in (_package, _export_package):
        one, two = make(built / "odd", tmp_path / "a.pt2"), make(built / "odd", tmp_path / "b.pt2")
        assert one.read_bytes() == two.read_bytes()
        with zipfile.ZipFile(one) as archive:
            for info in archive.infolist():
                assert info.date_time == (1980, 1, 1, 0, 0, 0)
                assert info.compress_type == zipfile.ZIP_STORED
                assert info.filename.startswith("archive/")
                with one.open("rb") as f:
                    f.seek(info.header_offset + 26)
                    name, extra = (int.from_bytes(f.read(2), "little") for _ in range(2))
                assert (info.header_offset + 30 + name + extra) % 64 == 0
