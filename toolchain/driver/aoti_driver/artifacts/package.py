"""The ``package`` and ``export_package`` subcommands: two archives that stock torch reads."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import torch

from aoti_driver.artifacts import provenance
from aoti_driver.base import files
from aoti_driver.contract import isa
from aoti_driver.contract.code_parts import Codegen
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.program import stock_archive, weights_file
from aoti_driver.program.archive import Pt2Archive
from aoti_driver.program.blob import blob_rows, blob_size
from aoti_driver.program.weights_file import raw_bytes

_MODEL = "data/aotinductor/model"


def add_export_package_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--graph", "--weights", "--manifest", "--out"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--provenance", default="")


def add_package_arguments(parser: argparse.ArgumentParser) -> None:
    add_export_package_arguments(parser)
    parser.add_argument("--lib", required=True)


def _write_provenance(path: str, archive: Pt2Archive) -> None:
    if path:
        archive.write_file(provenance.RECORD, path)


def run_package(args: argparse.Namespace) -> None:
    """Writes a package for ``torch._inductor.aoti_load_package`` and ``AOTIModelPackageLoader``."""
    library = read_manifest(args.manifest, LibraryManifest)
    codegen = library.codegen
    stem = f"{_MODEL}/{codegen.program_id}.wrapper"
    with files.outputs(args.out) as (out,), Pt2Archive(out) as archive:
        archive.write_file(f"{stem}.so", args.lib)
        archive.write_string(f"{stem}_metadata.json", json.dumps(_metadata(codegen)))
        archive.write_stream(
            f"{stem}_weights.blob",
            blob_size(codegen.constants, library.program),
            _blob(args.weights, library),
        )
        _write_provenance(args.provenance, archive)


def run_export_package(args: argparse.Namespace) -> None:
    """Writes an ExportedProgram with its weights: ``torch.export.load``."""
    manifest = read_manifest(args.manifest, ProgramManifest)
    weights = weights_file.read_weights(args.weights)
    with files.outputs(args.out) as (out,), Pt2Archive(out) as archive:
        stock_archive.write_archive(args.graph, manifest, weights, archive)
        _write_provenance(args.provenance, archive)


def _metadata(codegen: Codegen) -> dict[str, str]:
    """The metadata that torch's loader requires; none of it depends on the machine of this
    action.
    """
    return {
        "AOTI_DEVICE_KEY": codegen.device,
        "AOTI_MACHINE": isa.find(codegen.isa).cpu,
        "AOTI_PLATFORM": "linux",
        "torch_version": torch.__version__,
    }


def _blob(weights: str, library: LibraryManifest) -> Iterator[bytes | memoryview]:
    tensors = weights_file.read_weights(weights)
    for name, size in blob_rows(library.codegen.constants, library.program):
        data = raw_bytes(tensors[name])
        yield data
        yield b"\0" * (size - len(data))
