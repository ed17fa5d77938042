"""One architecture through the project's own steps: export, freeze, generate C++."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from aoti_driver.base import quiet
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import to_json
from aoti_driver.export import pytrees
from aoti_driver.inductor import codegen
from aoti_driver.program import graph_file, recurrent, result_shapes, weights_file
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

from tests.survey.registry import BATCH, Architecture, Sample

ISA = "x86-64-v3"
PROGRAM_ID = "survey"

_FUNCTION = re.compile(r"\b(aoti_torch_\w+|torch_(?:new|delete|list|string)_\w+)(?=\s*\()")
_DISPATCHED = re.compile(r'aoti_dispatch::Call\("([^"]+)", "([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Frozen:
    """batch: whether the batch is a dynamic dim of the program."""

    program: ExportedProgram
    sample: Sample
    batch: bool


def build(architecture: Architecture) -> Sample:
    torch.manual_seed(0)
    return architecture.build()


def export(architecture: Architecture) -> Frozen:
    """With a dynamic batch where it exports so, else as it is."""
    sample = build(architecture)
    if sample.batch and _has_batch(sample):
        with contextlib.suppress(Exception):
            return Frozen(_export(sample, _batch_shapes(sample)), sample, True)
        sample = build(architecture)
    return Frozen(_export(sample, None), sample, False)


def _export(sample: Sample, shapes: Any) -> ExportedProgram:
    result_shapes.declare()
    with torch.no_grad(), quiet.silenced(), recurrent.kept_whole():
        return torch.export.export(
            sample.module, sample.args, dict(sample.kwargs), dynamic_shapes=shapes
        )


def _has_batch(sample: Sample) -> bool:
    leaves = pytree.tree_leaves((sample.args, dict(sample.kwargs)))
    return any(_is_batch(leaf) for leaf in leaves)


def _is_batch(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == BATCH


def _batch_shapes(sample: Sample) -> Any:
    batch = Dim("batch", min=1, max=64)
    mark: Callable[[Any], Any] = lambda value: {0: batch} if _is_batch(value) else None  # noqa: E731
    args = tuple(pytree.tree_map(mark, list(sample.args)))
    kwargs = {name: pytree.tree_map(mark, value) for name, value in sample.kwargs.items()}
    parameters = inspect.signature(sample.module.forward).parameters
    if any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters.values()):
        return (args,)
    return {**dict(zip(parameters, args)), **kwargs}


def freeze(frozen: Frozen, folder: Path, label: str) -> None:
    """graph.json, weights.safetensors and manifest.json, as the export step writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    ep = frozen.program
    pytrees.make_serializable(ep)
    graph_file.save_graph(ep, folder / "graph.json")
    weights_file.write_weights(folder / "weights.safetensors", graph_file.stored_tensors(ep))
    manifest = ProgramManifest(
        label=label,
        name=PROGRAM_ID,
        torch_version=torch.__version__,
        strict=False,
        dims=(),
        inputs=(),
        outputs=(),
        constants=graph_file.constants(ep),
        graph_sha256=hashlib.sha256((folder / "graph.json").read_bytes()).hexdigest(),
    )
    (folder / "manifest.json").write_text(to_json(manifest), encoding="utf-8")


def generate(folder: Path, options: dict[str, str], cuda_archs: Sequence[str] = ()) -> None:
    """wrapper.cpp, kernels/ and compiled.json, as the codegen step does; images.bin for GPUs."""
    spec: dict[str, Any] = {"program_id": PROGRAM_ID, "isa": ISA, "options": options}
    if cuda_archs:
        spec |= {"device": "cuda", "cuda_archs": list(cuda_archs)}
    parser = argparse.ArgumentParser()
    codegen.add_arguments(parser)
    arguments = [f"--spec={json.dumps(spec)}"]
    for flag, name in (
        ("graph", "graph.json"),
        ("manifest", "manifest.json"),
        ("out_wrapper", "wrapper.cpp"),
        ("out_kernels", "kernels"),
        ("out_manifest", "compiled.json"),
        ("out_cuda_images", "images.bin"),
    ):
        arguments.append(f"--{flag}={folder / name}")
    codegen.run(parser.parse_args(arguments))


def sources(folder: Path) -> list[Path]:
    """The wrapper and the kernels."""
    return [folder / "wrapper.cpp", *sorted((folder / "kernels").glob("*.cpp"))]


def called(folder: Path) -> list[str]:
    """The functions that the generated code calls; an operator without one by its own name."""
    text = "".join(path.read_text(encoding="utf-8") for path in sources(folder))
    operators = {f"{name}.{overload or 'default'}" for name, overload in _DISPATCHED.findall(text)}
    return sorted(set(_FUNCTION.findall(text)) | operators)
