"""``import``: a program that stock ``torch.export.save`` wrote; the same outputs as ``export``."""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from aoti_driver import describe, dims, files, naming, program
from aoti_driver.describe import Symbols
from aoti_driver.dims import Dims
from aoti_driver.errors import DriverError, did_you_mean, listed
from aoti_driver.manifest import DTYPES, Extent, Input, public_version
from aoti_driver.specs import TensorSpec, parse_specs

_LARGEST = 2**31 - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True)
    parser.add_argument("--program", required=True)
    for out in ("graph", "weights", "manifest"):
        parser.add_argument(f"--out_{out}", required=True)
    parser.add_argument("--out_locations", help="JSON, like export's; no source is known: empty")


def run(args: argparse.Namespace) -> None:
    spec: dict[str, Any] = json.loads(Path(args.spec).read_text(encoding="utf-8"))
    label = spec["label"]
    ep = load(args.program, label)
    declared = dims.parse_dims(spec.get("dynamic_dims") or {}, label)
    patterns = parse_specs(spec.get("inputs") or {}, declared, label)
    if patterns:
        inputs, symbols = _declared(ep, patterns, declared, label)
        used = declared
    else:
        inputs, symbols, used = _found(ep, label)
    targets = [args.out_graph, args.out_weights, args.out_manifest]
    if args.out_locations:
        targets.append(args.out_locations)
    with files.outputs(*targets) as out:
        graph, weights, manifest = out[:3]
        for table in out[3:]:
            table.write_text("{}\n", encoding="utf-8")
        program.save_graph(ep, graph)
        program.write_weights(weights, program.stored_tensors(ep))
        document = describe.make_manifest(
            ep,
            graph,
            label=label,
            name=spec["name"],
            strict=False,
            dims=used,
            inputs=inputs,
            symbols=symbols,
        )
        manifest.write_text(document.to_json(), encoding="utf-8")


def load(path: str, label: str) -> ExportedProgram:
    where = f"{label}: program {Path(path).name}"
    if not zipfile.is_zipfile(path):
        raise DriverError(f"{where}: this is no .pt2 file. Write one with torch.export.save.")
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
    try:
        return torch.export.load(path)
    except Exception as e:
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise DriverError(
            f"{where}: torch {torch.__version__} cannot load it: {reason}\n"
            f"{_written_by(path)}  If another version of torch wrote it, write it anew with "
            f"{public_version(torch.__version__)}; if it uses custom operators, use torch_export "
            "on the source."
        ) from None


def _written_by(path: str) -> str:
    """The torch version in the file, where it has one."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                text = archive.read(name)[-4000:].decode("utf-8", "replace")
                if match := re.search(r'"torch_version":\s*"([^"]+)"', text):
                    return f"  It was written by torch {match[1]}.\n"
    return ""


def _tensors(ep: ExportedProgram, label: str) -> list[tuple[str, str, torch.Tensor]]:
    """(name, dtype, fake tensor) of each tensor input: the names are forward()'s arguments'."""
    values = describe.placeholders(ep)
    names = describe.tensor_inputs(ep)
    found = []
    for name, placeholder in zip(naming.input_names([[n] for n in names]), names):
        value = values[placeholder]
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise DriverError(f'{label}: input "{name}" is {dtype}, which is not supported')
        found.append((name, dtype, value))
    return found


def _declared(
    ep: ExportedProgram, patterns: Mapping[str, TensorSpec], declared: Dims, label: str
) -> tuple[list[Input], Symbols]:
    """Dims as the rule names them; they must fit what the program was exported for."""
    inputs = []
    shapes = []
    tensors = _tensors(ep, label)
    names = [name for name, _, _ in tensors]
    for name in patterns:
        if name not in names:
            raise DriverError(
                f'{label}: inputs: the program has no input "{name}"{did_you_mean(name, names)}. '
                f"Its inputs: {listed(names)}."
            )
    for name, dtype, value in tensors:
        where = f'{label}: inputs["{name}"]'
        spec = patterns.get(name)
        if spec is None:
            raise DriverError(f"{where}: missing; the program takes {_text(dtype, value)}")
        if spec.dtype != dtype or len(spec.shape) != value.dim():
            raise DriverError(f"{where}: the program takes {_text(dtype, value)}")
        for i, (extent, size) in enumerate(zip(spec.shape, value.shape)):
            exported = describe.expression_of(size)
            if extent.dim is None and exported != extent.offset:
                raise DriverError(f"{where}: dim {i} is {extent}, the program takes {exported}")
        inputs.append(Input(name, name, dtype, spec.shape, stride=(), values=spec.values))
        shapes.append((name, spec.shape))
    symbols = describe.match_symbols(ep, shapes, label)
    describe.check_ranges(ep, symbols, declared, label)
    return inputs, symbols


def _found(ep: ExportedProgram, label: str) -> tuple[list[Input], Symbols, Dims]:
    """Dims as the program has them, called s0, s1, ... in the order in which inputs use them."""
    expressions: dict[sympy.Symbol, sympy.Expr] = {}
    ranges: dict[str, tuple[int, int]] = {}
    inputs = []
    for name, dtype, value in _tensors(ep, label):
        shape = []
        for size in value.shape:
            expression = describe.expression_of(size)
            for symbol in sorted(expression.free_symbols, key=str):
                if symbol not in expressions:
                    dim = f"s{len(expressions)}"
                    expressions[symbol] = sympy.Symbol(dim, integer=True)
                    ranges[dim] = _range(ep, symbol)
            shape.append(_extent(expression, expressions, name, label))
        inputs.append(Input(name, name, dtype, tuple(shape), stride=()))
    return inputs, Symbols(expressions), Dims(ranges, {}, {}, tuple(ranges))


def _range(ep: ExportedProgram, symbol: sympy.Symbol) -> tuple[int, int]:
    known = ep.range_constraints.get(symbol)
    if known is None:
        return 2, _LARGEST
    high = int(known.upper) if known.upper.is_Integer else _LARGEST
    return int(known.lower), min(high, _LARGEST)


def _extent(
    expression: sympy.Expr, names: Mapping[sympy.Symbol, sympy.Expr], name: str, label: str
) -> Extent:
    symbols = list(expression.free_symbols)
    if not symbols:
        return Extent(0, None, int(expression))
    if len(symbols) == 1:
        polynomial = sympy.Poly(expression, symbols[0])
        if polynomial.degree() == 1:
            scale, offset = (int(c) for c in polynomial.all_coeffs())
            return Extent(scale, str(names[symbols[0]]), offset)
    raise DriverError(f'{label}: input "{name}" has the size {expression}, which is not linear')


def _text(dtype: str, value: torch.Tensor) -> str:
    return f"{dtype}[{', '.join(str(describe.expression_of(s)) for s in value.shape)}]"
