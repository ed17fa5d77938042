"""The memory of steps: weights that are loaded by name are mapped, and nothing is in memory twice.

A step's peak is compared with that of the same step for narrow layers, since PyTorch itself needs
more than a small model.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.unit.driver.harness import DRIVER
from tests.unit.driver.process.steps import SITE

LAYERS = 4
WIDTH, NARROW = 6144, 64
WEIGHTS = LAYERS * WIDTH * WIDTH * 2  # bytes, as bfloat16
# So much of the weights is noise.
NOISE = WEIGHTS // 3

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, device, dtype):
        super().__init__()
        for i in range({layers}):
            layer = nn.Linear({width}, {width}, bias=False, device=device, dtype=dtype)
            setattr(self, f"layer{{i}}", layer)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x

def meta():
    return Model("meta", torch.bfloat16)

def random():
    return Model("cpu", torch.bfloat16)

def wide():
    return Model("cpu", torch.float32)
"""


@dataclasses.dataclass(frozen=True)
class Place:
    """A folder with the model, and its weights in two formats."""

    folder: Path
    width: int

    def export(
        self, entry: str, weights: str = "", dtype: str = "bfloat16", precision: str = "float32"
    ) -> int:
        spec: dict[str, Any] = {
            "label": "//pkg:m",
            "name": "m",
            "entry_point": f"pkg.m:{entry}",
            "inputs": {"x": f"{dtype}[rows, {self.width}]"},
            "sample_inputs": None,
            "dynamic_dims": {"rows": "1..16"},
            "strict": False,
            "decompositions": [],
            "method": None,
            "precision": precision,
        }
        (self.folder / "export.json").write_text(json.dumps(spec), encoding="utf-8")
        given = [f"--weight=_main/pkg/{weights}={weights}"] if weights else []
        return self._peak(
            "export",
            "--spec=export.json",
            "--source=_main/pkg/m.py=m.py",
            "--import_root=_main",
            *given,
            "--out_graph=graph.json",
            "--out_weights=out.safetensors",
            "--out_manifest=program.json",
        )

    def codegen(self) -> int:
        spec = {"program_id": "m", "isa": "x86-64-v3", "options": {}}
        (self.folder / "codegen.json").write_text(json.dumps(spec), encoding="utf-8")
        return self._peak(
            "codegen",
            "--spec=codegen.json",
            "--graph=graph.json",
            "--manifest=program.json",
            "--out_wrapper=program.cpp",
            "--out_kernels=kernels",
            "--out_manifest=manifest.json",
        )

    def _peak(self, *step: str) -> int:
        """Runs a step; the most memory of a process of it that no file is behind."""
        driver = [sys.executable, "-I", "-S", str(DRIVER / "main.py"), f"--site={SITE}", *step]
        environment = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        peak = 0
        with (self.folder / "printed.txt").open("w") as printed:
            process = subprocess.Popen(
                driver, cwd=self.folder, env=environment, stdout=printed, stderr=printed
            )
            while process.poll() is None:
                peak = max([peak, *map(_unmapped, _family(process.pid))])
                time.sleep(0.005)
        assert process.returncode == 0, (self.folder / "printed.txt").read_text()
        return peak


def _family(process: int) -> Iterator[int]:
    """The process and its descendants."""
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return
    for child in children.split():
        yield from _family(int(child))


def _unmapped(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    kinds = ("RssAnon:", "RssShmem:")
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(kinds))


def _place(folder: Path, width: int) -> Place:
    (folder / "m.py").write_text(MODEL.format(layers=LAYERS, width=width), encoding="utf-8")
    tensors = {
        f"layer{i}.weight": torch.full((width, width), i / width, dtype=torch.bfloat16)
        for i in range(LAYERS)
    }
    save_file(tensors, folder / "w.safetensors")
    torch.save(tensors, folder / "w.pt")
    return Place(folder, width)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return _place(tmp_path_factory.mktemp("large"), WIDTH)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return _place(tmp_path_factory.mktemp("narrow"), NARROW)


def test_no_memory_for_weights_of_a_module_on_meta(large: Place, narrow: Place) -> None:
    assert large.export("meta", "w.safetensors") - narrow.export("meta", "w.safetensors") < NOISE
    assert large.codegen() - narrow.codegen() < NOISE


def test_weights_that_a_module_has_are_not_read_beside_them(large: Place, narrow: Place) -> None:
    peak = large.export("random", "w.pt") - narrow.export("random", "w.pt")
    assert WEIGHTS - NOISE < peak < WEIGHTS + NOISE


def test_matrices_are_converted_one_by_one(large: Place, narrow: Place) -> None:
    floats = 2 * WEIGHTS
    peaks = [place.export("wide", "", "float32", "bfloat16") for place in (large, narrow)]
    assert floats - NOISE < peaks[0] - peaks[1] < floats + WEIGHTS // LAYERS + NOISE
