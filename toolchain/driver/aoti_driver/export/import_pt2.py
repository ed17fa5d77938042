"""``import``: a program that stock ``torch.export.save`` wrote; the same outputs as ``export``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import dims, naming
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import Extent, Input, public_version
from aoti_driver.contract.specs import TensorSpec, parse_specs
from aoti_driver.export import describe, guards, load_reason, memory_places, trial
from aoti_driver.export.describe import Symbols
from aoti_driver.program import graph_file, signature, weights_file
from aoti_driver.program.no_code import no_code

_LARGEST = 2**31 - 1
_LARGEST_VALUE = 2**63 - 1


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
    taken = _declared(ep, patterns, declared, label) if patterns else _found(ep, label)
    found = guards.of_program(ep, taken.symbols.expressions, taken.dims.ranges, label)
    conditions = list(dict.fromkeys([*taken.guards, *found]))
    placeholders = signature.tensor_inputs(ep)
    names = {p: i.name for p, i in zip(placeholders, taken.inputs)}
    memory_places.check(ep, _offsets(args.program, placeholders), names, label)
    trial.check(
        ep,
        {p: TensorSpec(i.dtype, i.shape, i.values) for p, i in zip(placeholders, taken.inputs)},
        label,
    )
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
            name=spec["name"],
            strict=False,
            dims=taken.dims,
            inputs=taken.inputs,
            symbols=taken.symbols,
            guards=conditions,
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
        f"{public_version(torch.__version__)}; if it calls custom operators, export "
        "it without them, as docs/recipes.md shows."
    )


def _offsets(path: str, placeholders: Sequence[str]) -> dict[str, int]:
    """Where in its memory each of the inputs began, which torch's loader leaves out."""
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
    """The torch version in the file, where it has one."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                text = archive.read(name)[-4000:].decode("utf-8", "replace")
                if match := re.search(r'"torch_version":\s*"([^"]+)"', text):
                    return f"  It was written by torch {match[1]}.\n"
    return ""


@dataclasses.dataclass(frozen=True)
class _Taken:
    """What the program takes. ``guards``: sizes that are no linear function of one dim."""

    inputs: list[Input]
    symbols: Symbols
    dims: Dims
    guards: list[str]


def _arguments(ep: ExportedProgram, label: str) -> list[tuple[str, str, Any]]:
    """(name, dtype, fake tensor or symbolic integer) of each input; names are forward()'s."""
    values = signature.placeholders(ep)
    names = signature.tensor_inputs(ep)
    found = []
    for name, placeholder in zip(naming.input_names([[n] for n in names]), names):
        value = values[placeholder]
        number = not isinstance(value, torch.Tensor)
        dtype = "int64" if number else str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise DriverError(f'{label}: input "{name}" is {dtype}, which is not supported')
        found.append((name, dtype, value))
    return found


def _shape(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def _declared(
    ep: ExportedProgram, patterns: Mapping[str, TensorSpec], declared: Dims, label: str
) -> _Taken:
    """Dims as the rule names them; they must fit what the program was exported for."""
    inputs = []
    arguments = _arguments(ep, label)
    names = [name for name, _, _ in arguments]
    for name in patterns:
        if name not in names:
            raise DriverError(
                f'{label}: inputs: the program has no input "{name}"{did_you_mean(name, names)}. '
                f"Its inputs: {listed(names)}."
            )
    ranges = dict(declared.ranges)
    expressions: dict[sympy.Symbol, sympy.Expr] = {}
    sizes: list[tuple[str, Extent, sympy.Expr]] = []
    for name, dtype, value in arguments:
        where = f'{label}: inputs["{name}"]'
        spec = patterns.get(name)
        if spec is None:
            raise DriverError(f"{where}: missing; the program takes {_text(dtype, value)}")
        if spec.dtype != dtype or len(spec.shape) != len(_shape(value)):
            raise DriverError(f"{where}: the program takes {_text(dtype, value)}")
        for i, (extent, size) in enumerate(zip(spec.shape, _shape(value))):
            exported = describe.expression_of(size)
            if extent.dim is None and exported != extent.offset:
                raise DriverError(f"{where}: dim {i} is {extent}, the program takes {exported}")
            if extent.dim is not None and not exported.free_symbols:
                raise DriverError(describe.specialised(label, name, i, extent, int(exported)))
            sizes.append((f"{where}: dim {i}", extent, exported))
        if isinstance(value, torch.Tensor):
            inputs.append(Input(name, name, dtype, spec.shape, stride=(), values=spec.values))
            continue
        dim = _free_name(name, declared.order)
        expression = describe.expression_of(value)
        ranges[dim] = _value_range(ep, expression, spec, where)
        expressions[expression] = sympy.Symbol(dim, integer=True)
        inputs.append(Input(name, name, dtype, (), stride=(), value=dim))
    for _, extent, exported in sizes:
        _solve(exported, extent, expressions)
    conditions = []
    for where, extent, exported in sizes:
        if condition := _size_condition(exported, extent, expressions, where):
            conditions.append(condition)
    order = (*declared.order, *(name for name in ranges if name not in declared.order))
    used = dataclasses.replace(declared, ranges=ranges, order=order)
    symbols = Symbols(expressions)
    describe.check_ranges(ep, symbols, used, label)
    return _Taken(inputs, symbols, used, conditions)


def _free_name(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_value"
    return name


def _value_range(
    ep: ExportedProgram, expression: sympy.Expr, spec: TensorSpec, where: str
) -> tuple[int, int]:
    low, high = _range(ep, expression, least=-_LARGEST_VALUE, most=_LARGEST_VALUE)
    if spec.values is None:
        return low, high
    first, last = (int(v) for v in spec.values)
    if first < low or last > high:
        raise DriverError(
            f"{where}: declared are the values {first}..{last}, the program takes {low}..{high} "
            f'only. Write "int64[] in {max(first, low)}..{min(last, high)}".'
        )
    return first, last


def _solve(
    exported: sympy.Expr, extent: Extent, expressions: dict[sympy.Symbol, sympy.Expr]
) -> None:
    """Learns what a symbol is in the dims from a size that depends on nothing else."""
    if extent.dim is None or len(exported.free_symbols) != 1:
        return
    symbol = next(iter(exported.free_symbols))
    if symbol not in expressions and sympy.Poly(exported, symbol).degree() == 1:
        declared = extent.scale * sympy.Symbol(extent.dim, integer=True) + extent.offset
        (solution,) = sympy.solve(exported - declared, symbol)
        expressions[symbol] = sympy.expand(solution)


def _size_condition(
    exported: sympy.Expr,
    extent: Extent,
    expressions: Mapping[sympy.Symbol, sympy.Expr],
    where: str,
) -> str | None:
    """What must hold for a size to be the one that the program takes; None if it always is."""
    if extent.dim is None:
        return None
    if not exported.free_symbols <= set(expressions):
        raise DriverError(
            f"{where}: the program takes the size {exported}, of which no input tells "
            f"{listed(sorted(map(str, exported.free_symbols - set(expressions))))} alone"
        )
    declared = extent.scale * sympy.Symbol(extent.dim, integer=True) + extent.offset
    wanted = sympy.expand(exported.subs(dict(expressions)))
    if sympy.expand(wanted - declared) == 0:
        return None
    if len(wanted.free_symbols) <= 1:
        raise DriverError(
            f"{where} is {extent}, but the program takes {wanted} there: sizes that are always "
            f"the same function of one dim. Write {wanted} in its place."
        )
    return f"{guards.text_of(declared)} == {guards.text_of(wanted)}"


def _found(ep: ExportedProgram, label: str) -> _Taken:
    """Dims as the program has them, called s0, s1, ... in the order in which inputs use them."""
    expressions: dict[sympy.Symbol, sympy.Expr] = {}
    ranges: dict[str, tuple[int, int]] = {}
    arguments = _arguments(ep, label)

    def new_dim(low: int, high: int) -> str:
        name = f"s{len(ranges)}"
        ranges[name] = (low, high)
        return name

    values: dict[str, str] = {}
    for name, _, value in arguments:
        for size in _shape(value):
            expression = describe.expression_of(size)
            if _is_linear(expression) and not expression.free_symbols <= set(expressions):
                (symbol,) = expression.free_symbols
                dim = new_dim(*_root_range(ep, expression, symbol))
                expressions[symbol] = sympy.Symbol(dim, integer=True)
        if not isinstance(value, torch.Tensor):
            symbol = describe.expression_of(value)
            if symbol not in expressions:
                bounds = _range(ep, symbol, least=-_LARGEST_VALUE, most=_LARGEST_VALUE)
                expressions[symbol] = sympy.Symbol(new_dim(*bounds), integer=True)
            values[name] = str(expressions[symbol])
    inputs = []
    conditions = []
    for name, dtype, value in arguments:
        shape = []
        for size in _shape(value):
            expression = describe.expression_of(size)
            if not expression.free_symbols or _is_linear(expression):
                shape.append(_extent(expression, expressions))
                continue
            if not expression.free_symbols <= set(expressions):
                raise DriverError(
                    f'{label}: input "{name}" has the size {expression}, and no input tells the '
                    f"sizes {listed(sorted(map(str, expression.free_symbols)))} by themselves"
                )
            dim = new_dim(*_range(ep, expression))
            known = expression.subs(expressions)
            conditions.append(f"{dim} == {guards.text_of(known)}")
            shape.append(Extent(1, dim, 0))
        inputs.append(Input(name, name, dtype, tuple(shape), stride=(), value=values.get(name)))
    return _Taken(inputs, Symbols(expressions), Dims(ranges, {}, {}, tuple(ranges)), conditions)


def _range(
    ep: ExportedProgram, expression: sympy.Expr, least: int = 0, most: int = _LARGEST
) -> tuple[int, int]:
    known = ep.range_constraints.get(expression)
    if known is None:
        return max(2, least), most
    low = int(known.lower) if known.lower.is_Integer else least
    high = int(known.upper) if known.upper.is_Integer else most
    return max(low, least), min(high, most)


def _root_range(
    ep: ExportedProgram, expression: sympy.Expr, symbol: sympy.Symbol
) -> tuple[int, int]:
    """The range of a symbol that a size is a linear function of."""
    known = ep.range_constraints
    if symbol in known or expression not in known:
        return _range(ep, symbol)
    scale, offset = (int(c) for c in sympy.Poly(expression, symbol).all_coeffs())
    low, high = _range(ep, expression)
    return max(0, -((offset - low) // scale)), (high - offset) // scale


def _is_linear(expression: sympy.Expr) -> bool:
    symbols = list(expression.free_symbols)
    if len(symbols) != 1 or not expression.is_polynomial(*symbols):
        return False
    polynomial = sympy.Poly(expression, symbols[0])
    return bool(
        polynomial.degree() == 1
        and all(c.is_Integer for c in polynomial.all_coeffs())
        and polynomial.all_coeffs()[0] > 0
    )


def _extent(expression: sympy.Expr, names: Mapping[sympy.Symbol, sympy.Expr]) -> Extent:
    symbols = list(expression.free_symbols)
    if not symbols:
        return Extent(0, None, int(expression))
    scale, offset = (int(c) for c in sympy.Poly(expression, symbols[0]).all_coeffs())
    return Extent(scale, str(names[symbols[0]]), offset)


def _text(dtype: str, value: Any) -> str:
    return f"{dtype}[{', '.join(str(describe.expression_of(s)) for s in _shape(value))}]"
