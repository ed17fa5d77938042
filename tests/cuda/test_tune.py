"""NAME.tune in the emulator: candidates run and give equal results, and a file is written, which
builds read. Its times are the emulator's, so nothing is said of which candidate is taken.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path("tests/cuda")
NAME = "products.tuning.json"
SIZES = ("k", "m", "n", "stages", "warps")


def tune(program: str, workspace: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FOLDER / f"{program}.sh"],
        env={**os.environ, "BUILD_WORKSPACE_DIRECTORY": str(workspace), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_file_is_written(tmp_path: Path) -> None:
    """What was measured on other architectures stays."""
    (tmp_path / FOLDER).mkdir(parents=True)
    path = tmp_path / FOLDER / NAME
    other = {"gpu": "another", "products": {}}
    path.write_text(json.dumps({"format": 1, "archs": {"sm_90": other}}), encoding="utf-8")
    done = tune("products_in_emulator.tune", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{FOLDER}/{NAME}: 3 products, measured on " in done.stdout
    archs = read(path)["archs"]
    assert archs.pop("sm_90") == other
    (measured,) = archs.values()
    assert "mulat" in measured["gpu"]
    assert set(measured["products"]) >= set(read(FOLDER / NAME)["archs"]["sm_80"]["products"])
    for tiles in measured["products"].values():
        # Rows of 1, of the sample and of 40 were measured: two classes, or one tile for both.
        assert [tile.get("rows") for tile in tiles] in ([16, None], [None])
        assert all(set(tile) - {"rows"} == set(SIZES) for tile in tiles)
    assert str(path) not in done.stdout + done.stderr


def test_without_a_driver(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    done = tune("products.tune", tmp_path, LD_LIBRARY_PATH="runtime/cuda/tests/none")
    assert done.returncode != 0
    assert "needs libcuda.so.1 of the NVIDIA driver" in done.stderr
    assert f"//tests/cuda:products.tune: {FOLDER}/{NAME} was not changed" in done.stderr
    assert not list((tmp_path / FOLDER).iterdir())


def test_outside_of_bazel_run(tmp_path: Path) -> None:
    done = tune("products.tune", tmp_path / "none", BUILD_WORKSPACE_DIRECTORY="")
    assert done.returncode != 0
    assert "bazel run //tests/cuda:products.tune" in done.stderr


def test_the_build_reads_the_file() -> None:
    (manifest,) = FOLDER.glob("products.manifest.json")
    expected = read(FOLDER / NAME)["archs"]["sm_80"]["products"]
    products = read(manifest)["codegen"]["cuda"]["products"]
    assert {p["key"]: p["tiles"] for p in products if p.get("tuned")} == expected
    assert len(expected) == 1
    assert len(products) == 3
