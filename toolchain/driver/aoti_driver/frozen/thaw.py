"""``thaw`` and ``thaw_weights``: read a frozen program from the source tree back into the build.

Graph and weights are read by two actions, so that new weights do not affect steps that only need
the graph.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import sys
from pathlib import Path

from aoti_driver.base import digests, files
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.torch_version import public_version
from aoti_driver.frozen import frozen_program
from aoti_driver.program import graph_text, loading


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request; name: the model's."""

    label: str
    name: str


@dataclasses.dataclass(frozen=True)
class _WeightsSpec:
    """The request; given: the weights, as a user names them."""

    label: str
    given: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, help="JSON: label, name")
    for flag in ("--graph", "--manifest"):
        parser.add_argument(flag, required=True)
    for out in ("graph", "manifest", "locations"):
        parser.add_argument(f"--out_{out}", required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _Spec)
    label = spec.label
    where = f"{label}: frozen {Path(args.manifest).name}"
    manifest = read_manifest(args.manifest, ProgramManifest, who=where)
    document, sha256 = frozen_program.read_graph(
        args.graph, f"{label}: frozen {Path(args.graph).name}"
    )
    frozen_program.check_whole(manifest, sha256, label)
    with files.outputs(args.out_graph, args.out_manifest, args.out_locations) as out:
        graph, completed, locations = out
        graph.write_text(graph_text.canonical(document), encoding="utf-8")
        built_with = _check_torch(graph, manifest, label)
        manifest = dataclasses.replace(
            manifest, label=label, name=spec.name, torch_version=built_with
        )
        completed.write_text(to_json(manifest), encoding="utf-8")
        locations.write_text("{}\n", encoding="utf-8")


def _check_torch(graph: Path, manifest: ProgramManifest, label: str) -> str:
    """Describes the versions of torch; raises an error if the one here can't read the graph."""
    import torch

    if public_version(manifest.torch_version) == public_version(torch.__version__):
        return str(torch.__version__)

    version = f"frozen by torch {manifest.torch_version}"
    try:
        loading.load_program(graph, dataclasses.replace(manifest, label=label))
    except Exception as e:
        reason = str(e).strip().removeprefix(f"{label}: ") or type(e).__name__
        raise DriverError(
            f"{label}: {version}, and the toolchain's torch {torch.__version__} can't read it: "
            f"{reason.splitlines()[0]}\n"
            "  Freeze the program anew where its source is (bazel run its .freeze target), or "
            f'build with torch.toolchain(version = "{public_version(manifest.torch_version)}").'
        ) from None
    print(f"{label}: {version}, compiled by torch {torch.__version__}", file=sys.stderr)
    return str(torch.__version__)


def add_weights_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, help="JSON: label, given")
    parser.add_argument("--info", required=True, help="the frozen weights.json")
    parser.add_argument("--weights", default="")
    parser.add_argument("--out", required=True)


def run_weights(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _WeightsSpec)
    label = spec.label
    info = frozen_program.WeightsInfo.from_json(
        Path(args.info).read_text(encoding="utf-8"), f"{label}: frozen {Path(args.info).name}"
    )
    if not args.weights:
        raise DriverError(
            f"{label}: the frozen program comes without its weights: {info.place()}.\n"
            "  Give them as `weights` of torch_import (`frozen_weights` of aoti_model): a file, or "
            "a target that fetches or makes it, such as an http_file."
        )
    found = digests.of_file(args.weights)
    if found != (info.sha256, info.size):
        raise DriverError(
            f"{label}: weights {spec.given}: these are not the weights that the program was "
            f"frozen with:\n"
            f"  expected sha256 {info.sha256}, {info.size:,} bytes\n"
            f"  found    sha256 {found[0]}, {found[1]:,} bytes{_tensors(args.weights, info)}\n"
            "  To freeze these, bazel run the .freeze target of the model. To compile the program "
            "with other weights of the same names and shapes, give them as `weights` of "
            "aoti_library."
        )
    with files.outputs(args.out) as (out,):
        shutil.copyfile(args.weights, out)


def _tensors(path: str, info: frozen_program.WeightsInfo) -> str:
    """The tensors that differ, if the file is a weights file."""
    try:
        other = frozen_program.describe_weights(path, "").tensors
    except DriverError:
        return " (not a safetensors file)"
    changed = [name for name in info.tensors if other.get(name) != info.tensors[name]]
    extra = [name for name in other if name not in info.tensors]
    if not changed and not extra:
        return "\n  The tensors are the same: the file was written by something else."
    shown = ", ".join((changed + extra)[:5])
    more = len(changed) + len(extra) - 5
    return f"\n  tensors that differ: {shown}{f' and {more} more' if more > 0 else ''}"
