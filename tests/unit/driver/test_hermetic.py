"""What a step writes: its outputs, and nothing anywhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.unit.driver.harness import DRIVER

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x):
        return torch.relu(self.layer(x)).softmax(-1)
"""
EXPORT_SPEC = {
    "label": "//pkg:m",
    "name": "m",
    "entry_point": "pkg.m:Model",
    "inputs": {"x": "float32[rows, 8]"},
    "dynamic_dims": {"rows": "1..16"},
}
CODEGEN_SPEC = {"program_id": "m", "isa": "x86-64-v3", "options": {}, "preload": []}
# As Bazel passes them: relative to the working directory.
STEPS = (
    [
        "export",
        "--spec=in/export.json",
        "--source=_main/pkg/m.py=in/m.py",
        "--import_root=_main",
        "--out_graph=out/graph.json",
        "--out_weights=out/weights.safetensors",
        "--out_manifest=out/program.json",
        "--out_locations=out/locations.json",
    ],
    [
        "codegen",
        "--spec=in/codegen.json",
        "--graph=out/graph.json",
        "--manifest=out/program.json",
        "--out_wrapper=out/program.cpp",
        "--out_kernels=out/kernels",
        "--out_interface=out/interface.cpp",
        "--out_manifest=out/manifest.json",
    ],
    [
        "export_package",
        "--graph=out/graph.json",
        "--weights=out/weights.safetensors",
        "--manifest=out/program.json",
        "--out=out/m.pt2",
    ],
)
OUTPUTS = {
    "graph.json",
    "weights.safetensors",
    "program.json",
    "locations.json",
    "program.cpp",
    "kernels",
    "kernels/kernels_0.cpp",
    "interface.cpp",
    "manifest.json",
    "m.pt2",
}
SITE = Path(torch.__file__).parents[1]
# Where torch leaves things that nobody asked for, next to other programs' files.
SHARED = [Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm")]
OURS = ("aoti", "torch", "inductor")


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def elsewhere() -> set[str]:
    """What the steps' own folders hold, and what in others' places may be theirs."""
    shared = [path for folder in SHARED if folder.is_dir() for path in folder.iterdir()]
    own = [p for folder in (DRIVER / "aoti_driver", SITE, SITE / "torch") for p in folder.iterdir()]
    return {*map(str, own), *(str(p) for p in shared if any(name in p.name for name in OURS))}


def run_steps(place: Path, in_worker: bool) -> None:
    """Runs all steps in a folder: by one worker, or in a process each."""
    for name in ("in", "out", "home", "tmp"):
        (place / name).mkdir()
    (place / "in" / "m.py").write_text(MODEL, encoding="utf-8")
    for name, spec in (("export", EXPORT_SPEC), ("codegen", CODEGEN_SPEC)):
        (place / "in" / f"{name}.json").write_text(json.dumps(spec), encoding="utf-8")
    driver = [sys.executable, "-I", "-S", str(DRIVER / "main.py"), f"--site={SITE}"]
    environment = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    if in_worker:
        requests = "".join(json.dumps({"arguments": step}) + "\n" for step in STEPS)
        runs = [([*driver, "--persistent_worker"], requests)]
    else:
        runs = [([*driver, *step], "") for step in STEPS]
    for command, text in runs:
        done = subprocess.run(
            command, cwd=place, env=environment, input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("in_worker", [False, True])
def test_nothing_is_left_outside_of_the_outputs(tmp_path: Path, in_worker: bool) -> None:
    before = elsewhere()
    run_steps(tmp_path, in_worker)
    assert listing(tmp_path / "out") == OUTPUTS
    assert listing(tmp_path / "in") == {"m.py", "export.json", "codegen.json"}
    assert listing(tmp_path / "home") == set()
    assert listing(tmp_path / "tmp") == set()
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out", "home", "tmp"}
    assert elsewhere() - before == set()
