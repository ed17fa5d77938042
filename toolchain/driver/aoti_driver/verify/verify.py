"""The ``verify`` subcommand (aoti_test): the compiled model against PyTorch.

Both get the same inputs, at both ends and inside each dim's range. At each point, each of them is
called several times in a row with different data in one process, so that state between calls is
compared too.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError, plural
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.program_parts import Input, Output
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.export import building, methods
from aoti_driver.export.building import add_source_arguments
from aoti_driver.program import loading, weights_file
from aoti_driver.program.weights_file import torch_dtype
from aoti_driver.verify.compare import (
    DEFAULT_TOLERANCES,
    INT8_TOLERANCES,
    OutputReport,
    compare,
    table,
)
from aoti_driver.verify.points import Sizes, points
from aoti_driver.verify.reference import (
    EagerReference,
    ProgramReference,
    Recorded,
    Reference,
    test_ranges,
)

_CALLS_PER_POINT = 2
# A large model need not be run at every point of its largest sizes. (A limit in seconds would make
# the tested points depend on the machine.)
_MAX_BYTES = 2 << 30
_SHOWN_FAILURES = 10


@dataclasses.dataclass(frozen=True)
class Spec:
    """The request; rtol, atol: None for the defaults. export: None for a program without source."""

    max_points: int
    rtol: float | None
    atol: float | None
    export: building.ExportSpec | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--spec", "--graph", "--weights", "--manifest", "--replay"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--reference", choices=("eager", "program"), default="eager")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, Spec)
    manifest = read_manifest(args.manifest, LibraryManifest).program
    method = spec.export.method if spec.export else None
    with files.scratch_directory() as scratch, methods.named_in_errors(method):
        reference = reference_of(args, spec, manifest, scratch)
        recorded = record(reference, manifest, spec.max_points)
        replayed = replay(args, recorded, scratch, manifest)
    tolerances = (spec.rtol, spec.atol)
    reports = judge(recorded, replayed, manifest, tolerances)
    text = _report(recorded, reports, manifest, args.reference)
    print(text)
    if folder := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
        Path(folder, "verify.txt").write_text(text + "\n", encoding="utf-8")
    if failed := [r for r in reports if r.failures]:
        raise DriverError(failures(failed, manifest))


def record(reference: Reference, manifest: ProgramManifest, max_points: int) -> list[Recorded]:
    """Runs the reference; ends early where the recorded tensors would fill the memory."""
    ranges = test_ranges(manifest)
    calls: list[Recorded] = []
    size = 0
    sample = reference.sample_sizes()
    for number, sizes in enumerate(points(ranges, sample, max_points, manifest.guards)):
        for seed in range(_CALLS_PER_POINT):
            call = reference.call(sizes, seed=_CALLS_PER_POINT * number + seed)
            calls.append(call)
            size += sum(t.nbytes for t in [*call.inputs.values(), *call.outputs.values()])
        if number >= 3 and size > _MAX_BYTES:
            break
    return calls


def judge(
    recorded: list[Recorded],
    replayed: dict[str, torch.Tensor],
    manifest: ProgramManifest,
    tolerances: tuple[float | None, float | None],
) -> list[OutputReport]:
    """Compares every output, and every input that is written in place, of every call."""
    reports = [
        OutputReport(
            o.name,
            torch_dtype(o.dtype),
            defaults=_defaults(o, manifest),
        )
        for o in manifest.outputs
    ]
    reports += [
        OutputReport(i.name, torch_dtype(i.dtype), defaults=_defaults(i, manifest))
        for i in manifest.inputs
        if i.mutated
    ]
    for number, call in enumerate(recorded):
        for report in reports:
            expected = {**call.outputs, **call.mutated}[report.name]
            got = replayed.get(f"{number}/{report.name}")
            compare(report, got, expected, f"call {number}{call.place()}", tolerances)
    return reports


def _defaults(tensor: Input | Output, manifest: ProgramManifest) -> tuple[float, float] | None:
    """The tolerances of what the numbers come from, if it is not the tensor's own dtype."""
    floats = tensor.number == "float" or tensor.dtype == "float32"
    if manifest.precision == "int8" and floats:
        return INT8_TOLERANCES
    if manifest.precision != "float32" and floats:
        return DEFAULT_TOLERANCES[torch_dtype(manifest.precision)]
    return DEFAULT_TOLERANCES[torch.float32] if tensor.number == "float" else None


def reference_of(
    args: argparse.Namespace, spec: Spec, manifest: ProgramManifest, scratch: Path
) -> Reference:
    if args.reference == "program":
        building.lay_out(args, scratch / "runfiles")  # the operators that the program calls
        ep = loading.load_program(
            args.graph, manifest, weights_file.read_weights(args.weights), flat=True
        )
        return ProgramReference(ep, manifest)
    if spec.export is None:
        raise DriverError(f"{manifest.label}: the spec has no export, so there is no eager model")
    model_spec = building.parse_spec(spec.export)
    tree, weights = building.lay_out(args, scratch / "runfiles")
    return EagerReference(tree, model_spec, weights, manifest)


def replay(
    args: argparse.Namespace,
    recorded: list[Recorded],
    scratch: Path,
    manifest: ProgramManifest,
    environment: Mapping[str, str] | None = None,
) -> dict[str, torch.Tensor]:
    """What the compiled model computes of recorded inputs; environment: more variables for it."""
    cases, results = scratch / "cases.safetensors", scratch / "results.safetensors"
    weights_file.write_weights(
        cases,
        {
            f"{number}/{name}": tensor
            for number, call in enumerate(recorded)
            for name, tensor in call.inputs.items()
        },
    )
    command = [
        os.path.abspath(args.replay),
        f"--weights={args.weights}",
        f"--in={cases}",
        f"--out={results}",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
        raise DriverError(
            f"{manifest.label}: the compiled model failed ({how}), where PyTorch did not:\n"
            f"{done.stderr.strip()}"
        )
    return weights_file.read_weights(results)


def _report(
    recorded: list[Recorded], reports: list[OutputReport], manifest: ProgramManifest, reference: str
) -> str:
    against = "eager PyTorch" if reference == "eager" else "the program run by PyTorch"
    places = "".join(f"\n    {place}" for place in _places(recorded))
    return (
        f"{manifest.label}: {plural(len(recorded), 'call')} of the compiled model against "
        f"{against}{f', at{places}' if places else ''}\n{table(reports)}"
    )


def _places(recorded: list[Recorded]) -> Iterator[str]:
    seen: list[Sizes] = []
    for call in recorded:
        if call.sizes and call.sizes not in seen:
            seen.append(call.sizes)
            yield ", ".join(f"{name} = {size}" for name, size in call.sizes.items())


def failures(failed: list[OutputReport], manifest: ProgramManifest) -> str:
    lines = [f"{manifest.label}: the compiled model does not compute what PyTorch does:"]
    for report in failed:
        shown = report.failures[:_SHOWN_FAILURES]
        lines += [f'  "{report.name}": {text}' for text in shown]
        if hidden := len(report.failures) - len(shown):
            lines.append(f'  "{report.name}": ... and {plural(hidden, "call")} more')
    return "\n".join(lines)
