"""Operators that are written with Triton: in programs for GPUs and for the CPU. Needs Triton."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.contract.code_parts import CudaCode
from aoti_driver.contract.manifest import CodeManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.process import cli

OPERATOR = """
    import torch, triton
    import triton.language as tl
    from torch.library import triton_op, wrap_triton

    @triton.jit
    def half(x):
        return x * 0.5

    @triton.jit
    def scale_kernel(x, y, count, block: tl.constexpr):
        places = tl.program_id(0) * block + tl.arange(0, block)
        used = places < count
        tl.store(y + places, half(tl.load(x + places, mask=used)) + tl.sigmoid(1.0), mask=used)

    @triton_op("{name}::scale", mutates_args={{}})
    def scale(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        count = x.numel()
        wrap_triton(scale_kernel)[(triton.cdiv(count, 16),)](x, y, count, block=16)
        return y
"""
FOR_CPU = """
    @scale.register_kernel("cpu")
    def _(x):
        return x * 0.5 + torch.sigmoid(x.new_ones(()))
"""
MODEL = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.ops.{name}.scale(x) + 1
"""


def run(arguments: list[str], folder: Path) -> str:
    """The step's error, of a process of its own: it changes Triton and imports files."""
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(os.open(folder / "error.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        code = cli.main(arguments)
        sys.stderr.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    error = (folder / "error.txt").read_text(encoding="utf-8")
    assert (code == 0) == (error == ""), error
    return error


class Steps:
    """name: of the operator's namespace and of the Python package, unique in this process."""

    def __init__(self, folder: Path, name: str, operator: str) -> None:
        self.folder, self.name = folder, name
        for file, text in (("op.py", operator), ("m.py", MODEL)):
            source = textwrap.dedent(text).format(name=name) if text else ""
            (folder / file).write_text(source, encoding="utf-8")
        self.operator = [
            f"--source=_main/{name}/op.py={folder / 'op.py'}",
            "--import_root=_main",
            f"--triton_module=_main/{name}/op.py",
        ]

    def export(self) -> str:
        spec: dict[str, Any] = {
            "label": "//pkg:m",
            "name": "m",
            "entry_point": f"{self.name}.m:Model",
            "inputs": {"x": "float32[batch, 4]"},
            "sample_inputs": None,
            "dynamic_dims": {"batch": "1..8"},
            "strict": False,
            "decompositions": [],
            "method": None,
        }
        (self.folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        outs = ("graph", "weights", "manifest", "locations")
        return run(
            [
                "export",
                "--spec=spec.json",
                f"--source=_main/{self.name}/m.py={self.folder / 'm.py'}",
                *self.operator,
                *(f"--out_{out}={out}" for out in outs),
            ],
            self.folder,
        )

    def codegen(self, device: str) -> str:
        spec = {"program_id": "m", "isa": "x86-64-v3", "options": {}}
        if device == "cuda":
            spec |= {"device": "cuda", "cuda_archs": ["sm_80"]}
        (self.folder / f"{device}.spec").write_text(json.dumps(spec), encoding="utf-8")
        outs = ("wrapper", "kernels", "manifest", "cuda_images")
        return run(
            [
                "codegen",
                f"--spec={device}.spec",
                *self.operator,
                *(f"--{flag}={flag}" for flag in ("graph", "manifest", "locations")),
                *(f"--out_{out}={device}.{out}" for out in outs),
            ],
            self.folder,
        )


def test_kernels_on_gpus_and_pytorchs_operators_on_the_cpu(tmp_path: Path) -> None:
    step = Steps(tmp_path, "triton_both", OPERATOR + FOR_CPU)
    assert step.export() == ""
    assert "torch.ops.triton_both.scale.default" in (tmp_path / "graph").read_text()
    assert step.codegen("cuda") == ""
    on_cuda = read_manifest(tmp_path / "cuda.manifest", CodeManifest).codegen
    assert on_cuda.cuda == CudaCode(("sm_80",), 2)
    assert '{"scale_kernel", kImages0, 2},' in (tmp_path / "cuda.wrapper").read_text()
    assert step.codegen("cpu") == ""
    on_cpu = read_manifest(tmp_path / "cpu.manifest", CodeManifest).codegen
    assert not any("scale" in operator for shim in on_cpu.shims for operator in shim.operators)
    assert "tmp" in "".join(file.read_text() for file in (tmp_path / "cpu.kernels").iterdir())


def test_without_a_kernel_for_the_cpu(tmp_path: Path) -> None:
    """The export runs Triton's interpreter, and code for the CPU is refused."""
    step = Steps(tmp_path, "triton_alone", OPERATOR)
    assert step.export() == ""
    assert step.codegen("cuda") == ""
    assert step.codegen("cpu") == (
        '//pkg:m: devices has "cpu", and these operators are written for GPUs alone '
        "(torch.library.triton_op):\n"
        "  triton_alone::scale: triton_alone/m.py:6: return torch.ops.triton_alone.scale(x) + 1\n"
        "Say in the operator's file what computes it on the CPU, with PyTorch's operators: "
        '@scale.register_kernel("cpu"). Or compile the model for CUDA alone: device = "cuda"\n'
    )


@pytest.mark.parametrize(
    ("name", "operator", "expected"),
    [
        (
            "triton_none",
            "import triton",
            "triton_none/op.py: torch_triton_ops: the file defines no operator with "
            "@torch.library.triton_op. Files that only have kernels or functions belong to deps\n",
        ),
        (
            "triton_broken",
            "import absent_module",
            "triton_broken/op.py: the operators of torch_triton_ops can't be registered: "
            "ModuleNotFoundError: No module named 'absent_module'\n",
        ),
    ],
)
def test_files_that_define_no_operator(
    tmp_path: Path, name: str, operator: str, expected: str
) -> None:
    assert Steps(tmp_path, name, operator).export() == expected
