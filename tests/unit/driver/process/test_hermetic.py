"""What a step writes: its outputs and what the model prints, and nothing anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.driver.harness import DRIVER
from tests.unit.driver.process.steps import OUTPUTS, SITE, run_steps

MODEL = """
import logging
import sys
import warnings

import torch

logging.getLogger("shop").warning("logged by a package")
warnings.warn("warned of by a package")

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        logging.getLogger("torch").warning("logged by torch")
        print("printed by the constructor", file=sys.stderr)
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x):
        warnings.warn("warned of in forward()")
        return torch.relu(self.layer(x)).softmax(-1)
"""
# Where torch leaves files of its own, next to other programs' files.
SHARED = [Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm")]
OURS = ("aoti", "torch", "inductor")


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def elsewhere() -> set[str]:
    """What the steps' own folders hold, and what in others' places may be theirs."""
    shared = [path for folder in SHARED if folder.is_dir() for path in folder.iterdir()]
    own = [p for folder in (DRIVER / "aoti_driver", SITE, SITE / "torch") for p in folder.iterdir()]
    return {*map(str, own), *(str(p) for p in shared if any(name in p.name for name in OURS))}


@pytest.mark.parametrize("in_worker", [False, True])
def test_nothing_is_left_outside_of_the_outputs(tmp_path: Path, in_worker: bool) -> None:
    before = elsewhere()
    printed = run_steps(tmp_path, MODEL, {"x": "float32[rows, 8]"}, in_worker=in_worker)
    assert set(printed.splitlines()) == {"printed by the constructor"}
    assert listing(tmp_path / "out") == OUTPUTS
    assert listing(tmp_path / "in") == {"m.py", "export.json", "codegen.json"}
    assert listing(tmp_path / "home") == set()
    assert listing(tmp_path / "tmp") == set()
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out", "home", "tmp"}
    assert elsewhere() - before == set()
