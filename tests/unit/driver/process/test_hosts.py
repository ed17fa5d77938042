"""The same bytes whichever CPU builds (this one or an emulated one without AVX-512), and whenever.

PyTorch computes by other code on each of them, and predicts other layouts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.differences import different_files
from tests.unit.driver.process.steps import OUTPUTS, run_steps

CPU = os.environ["CPU"]  # a name that the emulator knows
EMULATOR = str(Path(os.environ["EMULATOR"]).absolute())
DECADES_LATER = str(Path(os.environ["DECADES_LATER"]).absolute())
# What is not declared here is computed by the libraries in PyTorch: MKL, oneDNN, SLEEF.
MODEL = """
import time

import torch
from torch import nn

assert time.gmtime().tm_year < 2050

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        square = torch.randn(64, 64)
        constants = {
            "random": square,
            "product": square @ square,
            "doubles": square.double() @ square.double(),
            "halves": square.bfloat16() @ square.bfloat16(),
            "vector": square @ square[0],
            "inverse": torch.linalg.inv(square),
            "values": torch.linalg.svdvals(square),
            "exp": square.exp(),
            "sin": square.sin(),
            "pow": square.abs().pow(0.3),
            "erfinv": square.clamp(-0.9, 0.9).erfinv(),
            "softmax": square.softmax(-1),
            "sum": square.sum(0),
            "gelu": nn.functional.gelu(square),
            "spectrum": torch.view_as_real(torch.fft.fft(square)),
            "convolved": torch.conv2d(square[None, None], square[None, None, :3, :3]),
        }
        for name, value in constants.items():
            self.register_buffer(name, value)
        self.names = list(constants)
        self.volumes = nn.Conv3d(4, 8, 3).bfloat16()
        self.points = nn.Conv3d(4, 8, 1, groups=4)
        self.planes = nn.Conv2d(4, 8, 3).bfloat16()

    def forward(self, volumes, planes):
        # Channels are the last dim in memory: a backend keeps it so or doesn't.
        volumes, planes = volumes.movedim(-1, 1), planes.movedim(-1, 1)
        total = sum(getattr(self, name).double().sum() for name in self.names)
        return (
            self.volumes(volumes.bfloat16()).relu(),
            self.points(volumes).relu(),
            self.planes(planes).relu(),
            total,
        )
"""
INPUTS = {
    "volumes": "float32[rows, 6, 6, 6, 4]",
    "planes": "bfloat16[rows, 8, 8, 4]",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("here")
    run_steps(place, MODEL, INPUTS, in_worker=True)
    return place / "out"


def test_same_bytes(here: Path, tmp_path: Path) -> None:
    runner = [EMULATOR, "-cpu", CPU]
    run_steps(tmp_path / "emulated", MODEL, INPUTS, in_worker=True, runner=runner)
    same_outputs(here, tmp_path / "emulated" / "out")


def test_same_bytes_decades_later(here: Path, tmp_path: Path) -> None:
    runner = ["env", f"LD_PRELOAD={DECADES_LATER}"]
    model = MODEL.replace("tm_year < 2050", "tm_year > 2050")
    assert model != MODEL
    run_steps(tmp_path / "later", model, INPUTS, in_worker=True, runner=runner)
    same_outputs(here, tmp_path / "later" / "out")


def same_outputs(here: Path, there: Path) -> None:
    files = sorted(name for name in OUTPUTS if (here / name).is_file())
    assert {path.relative_to(there).as_posix() for path in there.rglob("*")} == OUTPUTS
    differences = different_files(here, there, files)
    assert not differences, "\n".join(differences)
