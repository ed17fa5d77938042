"""What the tests of the driver share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aoti_driver
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.process import cli

if TYPE_CHECKING:
    import torch

DRIVER = Path(str(aoti_driver.__file__)).parents[1]


@dataclasses.dataclass(frozen=True)
class Result:
    """What a run of ``export`` left behind."""

    code: int
    error: str
    graph: Path
    weights: Path
    manifest_path: Path
    locations: Path

    @property
    def manifest(self) -> ProgramManifest:
        assert self.code == 0, self.error
        return read_manifest(self.manifest_path, ProgramManifest)

    def program(self) -> torch.export.ExportedProgram:
        """The program as later steps see it, with its weights."""
        # Imported here: tests that export nothing run without torch.
        from aoti_driver.program.loading import load_program
        from aoti_driver.program.weights_file import read_weights

        return load_program(self.graph, self.manifest, read_weights(self.weights))


Export = Callable[..., Result]


HEAD = "import torch\nfrom torch import nn\n"
X = {"x": "float32[batch, 4]"}
BATCH = {"batch": "2..64"}


def module(forward: str, init: str = "pass", arguments: str = "x") -> str:
    """The source of a model file whose ``build()`` makes a module with this ``forward``."""
    lines = [
        "class M(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        f"        {init}",
        f"    def forward(self, {arguments}):",
        *(f"        {line}" for line in forward.splitlines()),
        "def build():",
        "    return M()",
    ]
    return HEAD + "\n".join(lines) + "\n"


def fails(
    export: Export,
    source: str,
    inputs: Mapping[str, str] | None = X,
    dims: Mapping[str, str] | None = BATCH,
    **more: Any,
) -> str:
    """The error of an export, which has to fail."""
    result = export(source, inputs, dims, **more)
    assert result.code == 1, result.error
    for leak in ("/tmp", "site-packages", "runfiles", "TORCH", "Traceback", "mark_dynamic", "L["):
        assert leak not in result.error
    return result.error


def codegen(result: Result, **options: str) -> str:
    """The C++ of a program, but for its kernels."""
    spec = {"program_id": "m", "isa": "x86-64-v3", "options": options}
    folder = result.graph.parent / "code"
    folder.mkdir(exist_ok=True)
    outs = [f"--out_{n}={folder / n}" for n in ("wrapper", "kernels", "manifest")]
    code = cli.main(
        [
            "codegen",
            f"--spec={json.dumps(spec)}",
            f"--graph={result.graph}",
            f"--manifest={result.manifest_path}",
            *outs,
        ]
    )
    assert code == 0, "codegen failed, see stderr"
    return (folder / "wrapper").read_text(encoding="utf-8")
