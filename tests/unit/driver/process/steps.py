"""Runs a model through the driver's steps, as Bazel's actions run them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.unit.driver.harness import DRIVER

SITE = Path(torch.__file__).parents[1]
_CODEGEN_SPEC = {"program_id": "m", "isa": "x86-64-v3", "options": {}}
# As Bazel passes them: relative to the working directory.
_STEPS = (
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
    "manifest.json",
    "m.pt2",
}


def run_steps(
    place: Path,
    model: str,
    inputs: Mapping[str, str],
    *,
    in_worker: bool,
    runner: Sequence[str] = (),
) -> str:
    """Runs all steps in a new folder, by one worker or in a process each; `out` has what they made.

    Returns what the steps printed, as Bazel would show it.

    model: Python source with a class `Model`. inputs: their specs; `rows` is a dynamic dim.
    runner: a command that runs Python.
    """
    export_spec: dict[str, Any] = {
        "label": "//pkg:m",
        "name": "m",
        "entry_point": "pkg.m:Model",
        "inputs": dict(inputs),
        "sample_inputs": None,
        "dynamic_dims": {"rows": "1..16"},
        "strict": False,
        "decompositions": [],
        "method": None,
    }
    for name in ("in", "out", "home", "tmp"):
        (place / name).mkdir(parents=True)
    (place / "in" / "m.py").write_text(model, encoding="utf-8")
    for name, spec in (("export", export_spec), ("codegen", _CODEGEN_SPEC)):
        (place / "in" / f"{name}.json").write_text(json.dumps(spec), encoding="utf-8")
    driver = [*runner, sys.executable, "-I", "-S", str(DRIVER / "main.py"), f"--site={SITE}"]
    environment = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    if in_worker:
        requests = "".join(json.dumps({"arguments": step}) + "\n" for step in _STEPS)
        runs = [([*driver, "--persistent_worker"], requests)]
    else:
        runs = [([*driver, *step], "") for step in _STEPS]
    printed = ""
    for command, text in runs:
        done = subprocess.run(
            command, cwd=place, env=environment, input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        if in_worker:
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            assert [answer["exitCode"] for answer in answers] == [0] * len(_STEPS), answers
            printed += "".join(answer["output"] for answer in answers)
        else:
            printed += done.stdout + done.stderr
    return printed
