"""``differentiate``: the programs of a training step, from that of a forward pass.

The forward pass of training returns what the backward pass needs of it, beside its own outputs. The
backward pass takes that, and the gradients of the floating-point outputs, and returns the gradients
of the floating-point inputs. The names of its inputs say what they are: :data:`INPUT`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path

import torch

from aoti_driver.base import files, quiet
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import manifest_file
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export import describe, guards
from aoti_driver.export.training import Training, TrainingProgram
from aoti_driver.program import fakes, graph_file, weights_file
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import torch_dtype

_FILES = ("graph", "weights", "manifest", "locations")


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request.

    label: the operator's. names: of the two programs, and labels: theirs, the forward pass first.
    """

    label: str
    labels: tuple[str, ...]
    names: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True)
    for flag in ("graph", "weights", "manifest"):
        parser.add_argument(f"--{flag}", required=True)
    fakes.add_arguments(parser)
    for out in _FILES:
        parser.add_argument(f"--out_{out}", required=True, help="of the backward pass")
        parser.add_argument(f"--out_training_{out}", required=True, help="of the forward pass")


def run(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    spec = read_spec(args.spec, _Spec)
    manifest = read_manifest(args.manifest, ProgramManifest)
    check(spec.label, manifest)
    with quiet.without_warnings(), fakes.imported(args):
        ep = load_program(args.graph, manifest, weights_file.read_weights(args.weights))
        training = Training(spec.label, manifest, ep)
        programs = training.programs()
        targets = [getattr(args, f"out_{part}{f}") for part in ("training_", "") for f in _FILES]
        with files.outputs(*targets) as paths:
            for i, program in enumerate(programs):
                own = paths[i * len(_FILES) : (i + 1) * len(_FILES)]
                _write(program, spec.labels[i], spec.names[i], manifest, dict(zip(_FILES, own)))


def _write(
    program: TrainingProgram,
    label: str,
    name: str,
    manifest: ProgramManifest,
    paths: Mapping[str, Path],
) -> None:
    paths["locations"].write_text("{}\n", encoding="utf-8")
    graph_file.save_graph(program.exported, paths["graph"])
    tensors = graph_file.stored_tensors(program.exported)
    weights_file.write_weights(paths["weights"], tensors)
    specs = [(i.path, TensorSpec(i.dtype, i.shape, i.values)) for i in program.inputs]
    symbols = describe.match_symbols(program.exported, specs, label)
    ranges = program.dims.ranges
    from_two = {name: (max(low, 2), max(high, 2)) for name, (low, high) in ranges.items()}
    found = guards.of_program(
        program.exported,
        lambda: program.exported.module(check_guards=False),
        symbols.expressions,
        from_two,
        label,
    )
    known = [guard for guard in manifest.guards if set(guard.dims) <= set(ranges)]
    document = describe.make_manifest(
        program.exported,
        paths["graph"],
        label=label,
        name=name,
        strict=False,
        dims=program.dims,
        inputs=program.inputs,
        symbols=symbols,
        guards=list(dict.fromkeys([*known, *found])),
    )
    paths["manifest"].write_text(manifest_file.to_json(document), encoding="utf-8")


def check(label: str, manifest: ProgramManifest) -> None:
    """Refuses programs that have no backward pass of tensors."""
    where = f"{label}: differentiable = True, but {manifest.label}"
    for item in manifest.inputs:
        if item.mutated:
            raise DriverError(
                f'{where} writes to its input "{item.name}". Return the new value as an output.'
            )
        if item.value is not None or item.number is not None:
            raise DriverError(
                f'{where} takes the number "{item.name}". Make it a constant of the model.'
            )
    for constant in manifest.constants:
        if constant.mutated:
            raise DriverError(
                f'{where} writes to its buffer "{constant.name}". Make the buffer an argument.'
            )
    for items, what in ((manifest.inputs, "input"), (manifest.outputs, "output")):
        if not any(torch_dtype(item.dtype).is_floating_point for item in items):
            raise DriverError(f"{where} has no {what} of a floating-point dtype.")
