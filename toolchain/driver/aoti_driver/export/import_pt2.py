"""``import``: reads a program that ``torch.export.save`` wrote, and writes the same files as
``export``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.export import ExportedProgram

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import dims, json_records, manifest_file
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.specs import TensorSpec, parse_specs
from aoti_driver.contract.torch_version import public_version
from aoti_driver.export import (
    describe,
    guards,
    load_reason,
    memory_places,
    precision,
    results,
    trial,
)
from aoti_driver.export.imported_inputs import declared_inputs, found_inputs
from aoti_driver.program import fakes, graph_file, signature, weights_file
from aoti_driver.program.no_code import no_code


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request; inputs and dynamic_dims: as torch_import has them."""

    label: str
    name: str
    inputs: dict[str, str]
    dynamic_dims: dict[str, str]
    precision: str = dataclasses.field(default=precision.FLOAT32, metadata=json_records.OPTIONAL)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True)
    parser.add_argument("--program", required=True)
    fakes.add_arguments(parser)
    for out in ("graph", "weights", "manifest"):
        parser.add_argument(f"--out_{out}", required=True)
    parser.add_argument("--out_locations", help="JSON, like export's; no source is known: empty")


def run(args: argparse.Namespace) -> None:
    with fakes.imported(args):
        _import(args)


def _import(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _Spec)
    label = spec.label
    ep = load(args.program, label)
    declared = dims.parse_dims(spec.dynamic_dims, label)
    patterns = parse_specs(spec.inputs, declared, label)
    taken = declared_inputs(ep, patterns, declared, label) if patterns else found_inputs(ep, label)
    found = guards.of_program(
        ep,
        lambda: ep.module(check_guards=False),
        taken.symbols.expressions,
        taken.dims.ranges,
        label,
    )
    conditions = list(dict.fromkeys([*taken.guards, *found]))
    placeholders = signature.tensor_inputs(ep)
    names = {p: i.name for p, i in zip(placeholders, taken.inputs)}
    memory_places.check(ep, _offsets(args.program, placeholders), names, label)
    trial.check(
        ep,
        {p: TensorSpec(i.dtype, i.shape, i.values) for p, i in zip(placeholders, taken.inputs)},
        label,
    )
    precision.lower(ep, spec.precision)
    replaced = results.replace(ep)
    targets = [args.out_graph, args.out_weights, args.out_manifest]
    if args.out_locations:
        targets.append(args.out_locations)
    with files.outputs(*targets) as out:
        graph, weights, manifest = out[:3]
        for table in out[3:]:
            table.write_text("{}\n", encoding="utf-8")
        graph_file.save_graph(ep, graph)
        weights_file.write_weights(weights, graph_file.stored_tensors(ep))
        document = describe.make_manifest(
            ep,
            graph,
            label=label,
            name=spec.name,
            strict=False,
            dims=taken.dims,
            inputs=taken.inputs,
            symbols=taken.symbols,
            guards=conditions,
            replaced=replaced,
            precision=spec.precision,
        )
        manifest.write_text(manifest_file.to_json(document), encoding="utf-8")


def load(path: str, label: str) -> ExportedProgram:
    where = f"{label}: program {Path(path).name}"
    if not zipfile.is_zipfile(path):
        raise DriverError(f"{where}: this is not a .pt2 file. Write one with torch.export.save.")
    with zipfile.ZipFile(path) as archive:
        entries = archive.namelist()
    if any(name.endswith((".so", ".wrapper.cpp")) for name in entries):
        raise DriverError(
            f"{where}: this is a compiled AOTInductor package. Give the exported program that it "
            "was made from, as torch.export.save writes it."
        )
    if any("constants.pkl" in name or name.endswith("code/") for name in entries) and not any(
        "models/" in name or "serialized_exported_program" in name for name in entries
    ):
        raise DriverError(
            f"{where}: this is a TorchScript file. Export the model with torch.export.export."
        )
    with load_reason.logged() as log:
        try:
            with no_code(where, path):
                return torch.export.load(path)
        except DriverError:
            raise
        except Exception as e:
            reason = log.reason(e)
    raise DriverError(
        f"{where}: torch {torch.__version__} cannot load it: {reason}\n"
        f"{_written_by(path)}  If another version of torch wrote it, write it anew with "
        f"{public_version(torch.__version__)}; if it calls custom operators, give their targets "
        "to custom_ops (docs/custom_ops.md), or export it without them, as docs/recipes.md shows."
    )


def _offsets(path: str, placeholders: Sequence[str]) -> dict[str, int]:
    """The element of its memory at which each input begins, which torch's loader does not
    restore.
    """
    with zipfile.ZipFile(path) as archive:
        models = [name for name in archive.namelist() if name.endswith("models/model.json")]
        if not models:
            return {}
        values = json.loads(archive.read(models[0]))["graph_module"]["graph"]["tensor_values"]
    return {
        name: int(values[name].get("storage_offset", {}).get("as_int", 0))
        for name in placeholders
        if name in values
    }


def _written_by(path: str) -> str:
    """The torch version in the file, if it has one."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                text = archive.read(name)[-4000:].decode("utf-8", "replace")
                if match := re.search(r'"torch_version":\s*"([^"]+)"', text):
                    return f"  It was written by torch {match[1]}.\n"
    return ""
