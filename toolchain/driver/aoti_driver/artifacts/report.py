"""The ``report`` subcommand: a program's manifest as a page for people."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence

from aoti_driver.base import files
from aoti_driver.contract import dtypes
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.program_parts import Constant, Dim, Input
from aoti_driver.contract.size_expr import python_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", required=True, help="the manifest to describe")
    parser.add_argument("--out", required=True, help="the report to write")


def run(args: argparse.Namespace) -> None:
    text = render(read_manifest(args.manifest, LibraryManifest))
    with files.outputs(args.out) as (out,):
        out.write_text(text, encoding="utf-8")


def render(library: LibraryManifest) -> str:
    """The report's text: signature, dims, weights by kind, and what the generated code calls."""
    program = library.program
    sections = [
        f"{program.label}\n{'=' * len(program.label)}\n"
        f"torch {program.torch_version}, {'strict' if program.strict else 'non-strict'} export\n"
        f"graph sha256 {program.graph_sha256}\n",
        _section("Inputs", [_input_row(i) for i in program.inputs]),
        _section(
            "Outputs",
            [(o.name, f"{o.dtype}[{', '.join(map(str, o.shape))}]", "") for o in program.outputs],
        ),
        _section("Dims", [_dim_row(d) for d in program.dims]),
        _section("Guards", [(python_text(guard),) for guard in program.guards]),
        _section("Weights", list(_weight_rows(program.constants))),
        _code_section(library),
    ]
    return "\n".join(s for s in sections if s)


def _section(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    return f"{title}\n" + "".join(f"  {line.rstrip()}\n" for line in lines)


def _input_row(tensor: Input) -> tuple[str, str, str]:
    shape = ", ".join(map(str, tensor.shape))
    notes = []
    if tensor.mutated:
        notes.append("written in place")
    if tensor.values:
        notes.append(f"samples in {tensor.values[0]:g}..{tensor.values[1]:g}")
    return tensor.name, f"{tensor.dtype}[{shape}]", ", ".join(notes)


def _dim_row(dim: Dim) -> tuple[str, str, str]:
    return dim.name, f"{dim.min}..{dim.max}", f"= {dim.alias}" if dim.alias else ""


def _weight_rows(constants: Iterable[Constant]) -> Iterable[tuple[str, str, str]]:
    tensors: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for c in constants:
        kind = f"{c.kind}s, {c.dtype}" + (", written by the program" if c.mutated else "")
        tensors[kind] = tensors.get(kind, 0) + 1
        sizes[kind] = sizes.get(kind, 0) + math.prod(c.shape) * dtypes.DTYPES[c.dtype].bytes
    for kind in sorted(tensors):
        yield kind, f"{tensors[kind]} tensors", f"{sizes[kind]:,} bytes"


def _code_section(library: LibraryManifest) -> str:
    codegen = library.codegen
    rows = [
        ("device", ", ".join(library.devices)),
        ("isa", library.isas),
        ("program id", codegen.program_id),
    ]
    if codegen.cuda:
        rows.append(("GPUs", ", ".join(codegen.cuda.archs)))
        rows.append(("GPU kernels", str(codegen.cuda.kernels)))
    rows += [(f"option {k}", v) for k, v in sorted(codegen.options.items())]
    rows.append(("runtime", library.shim))
    rows += [("calls", shim.name) for shim in codegen.shims]
    return _section("Generated code", rows)
