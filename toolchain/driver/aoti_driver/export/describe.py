"""Makes the manifest of an ExportedProgram, with the declared dims in place of torch's symbols."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    TensorArgument,
)

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import naming
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.program_parts import Input, Output
from aoti_driver.contract.size_expr import SizeExpr, Unknown
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export import index_inputs
from aoti_driver.export.torch_sizes import expression_of, from_sympy, symbol, to_sympy
from aoti_driver.program import aliasing, graph_file, signature


@dataclasses.dataclass(frozen=True)
class Symbols:
    """torch's symbols in terms of the free dims, e.g. ``{s77: batch, s27: 2*half}``."""

    expressions: Mapping[sympy.Symbol, sympy.Expr]

    def size(self, value: Any) -> SizeExpr:
        """A size or stride in terms of the free dims; Unknown if it depends on the data."""
        expression = expression_of(value)
        if not expression.free_symbols <= set(self.expressions):
            return Unknown()
        return from_sympy(sympy.expand(expression.subs(dict(self.expressions))))


def match_symbols(
    ep: ExportedProgram, inputs: Sequence[tuple[str, TensorSpec]], label: str
) -> Symbols:
    """Matches each input's exported sizes with its declared sizes.

    inputs: (path, spec) in the order of :func:`signature.tensor_inputs`.
    """
    values = signature.placeholders(ep)
    names = signature.tensor_inputs(ep)
    if len(names) != len(inputs):
        raise DriverError(
            f"{label}: the exported program takes {len(names)} tensors, forward() was given "
            f"{len(inputs)}: a tensor became a constant of the program"
        )
    expressions: dict[sympy.Symbol, sympy.Expr] = {}
    sums: list[tuple[sympy.Expr, sympy.Expr]] = []
    for placeholder, (path, spec) in zip(names, inputs):
        if spec.value is not None:
            expressions[expression_of(values[placeholder])] = symbol(spec.value)
            continue
        for i, (size, declared) in enumerate(zip(values[placeholder].shape, spec.shape)):
            exported = expression_of(size)
            if not declared.dims:
                continue
            if not exported.free_symbols:
                raise DriverError(specialised(label, path, i, declared, int(exported)))
            if len(declared.dims) > 1:
                sums.append((exported, to_sympy(declared)))
                continue
            root = next(iter(exported.free_symbols))
            solution = sympy.solve(exported - to_sympy(declared), root)
            if len(solution) == 1:
                expressions.setdefault(root, sympy.expand(solution[0]))
    # A sum is a symbol of its own if forward() does not relate it to its dims.
    for exported, total in sums:
        if isinstance(exported, sympy.Symbol):
            expressions.setdefault(exported, total)
    return Symbols(expressions)


def check_ranges(ep: ExportedProgram, symbols: Symbols, dims: Dims, label: str) -> None:
    """The program must be valid for the whole declared range (0 and 1 are checked separately)."""
    for root, expression in symbols.expressions.items():
        known = ep.range_constraints.get(root)
        if known is None or not isinstance(expression, sympy.Symbol):
            continue
        low, high = dims.ranges[str(expression)]
        if known.upper < high or known.lower > max(low, 2):
            best = max(low, int(known.lower)), min(high, int(known.upper))
            name = str(expression)
            place, text = dims.declared_text(name, *best)
            raise DriverError(
                f"{label}: {place}: the model works only for {best[0]}..{best[1]}, but "
                f'{low}..{high} is declared.\n  Suggested fix: "{dims.numbers.get(name, name)}": '
                f'"{text}"'
            )


def specialised(label: str, path: str, index: int, declared: SizeExpr, size: int) -> str:
    return (
        f'{label}: input "{path}": dim {index} ({declared}) was declared dynamic, but the model '
        f"works for the size {size} only. Write {size} in its place in inputs and remove "
        f'"{declared.dims[0]}" from dynamic_dims, or change the line of the model that fixes it.'
    )


def describe_inputs(
    ep: ExportedProgram, inputs: Sequence[Input], symbols: Symbols, label: str
) -> tuple[Input, ...]:
    """Completes inputs (name, path, dtype, shape) with properties that the export determined.

    Raises DriverError for declared values with which forward() would read outside a table.
    """
    values = signature.placeholders(ep)
    mutated = aliasing.mutated_inputs(ep)
    possible = index_inputs.possible_values(ep)
    return tuple(
        dataclasses.replace(
            given,
            stride=tuple(symbols.size(s) for s in _strides(values[placeholder])),
            mutated=placeholder in mutated,
            values=_values(given, possible.get(placeholder), label),
        )
        for placeholder, given in zip(signature.tensor_inputs(ep), inputs)
    )


def _strides(value: Any) -> tuple[Any, ...]:
    return value.stride() if isinstance(value, torch.Tensor) else ()


def _values(
    given: Input, possible: index_inputs.Range | None, label: str
) -> tuple[float, float] | None:
    """The declared values; without a declaration, the values that the program can take."""
    if possible is None:
        return given.values
    if given.values is None:
        return possible.low, possible.high
    low, high = given.values
    if low < possible.low or high > possible.high:
        fitting = max(int(low), possible.low), min(int(high), possible.high)
        if fitting[0] > fitting[1]:
            fitting = possible.low, possible.high
        raise DriverError(
            f'{label}: inputs["{given.path}"]: its values are declared as {int(low)}..{int(high)}, '
            f"but forward() uses them as indices, and {possible.low}..{possible.high} are all that "
            f'exist there.\n  Suggested fix: "in {fitting[0]}..{fitting[1]}"'
        )
    return given.values


def check_outputs(ep: ExportedProgram, label: str) -> list[OutputSpec]:
    """The outputs of forward(), which must be tensors and constants."""
    specs = [s for s in ep.graph_signature.output_specs if s.kind == OutputKind.USER_OUTPUT]
    paths = naming.result_paths(ep.call_spec.out_spec)
    for spec, path in zip(specs, paths, strict=True):
        text = naming.path_text(path) or "the result"
        if isinstance(spec.arg, ConstantArgument) and isinstance(spec.arg.value, str):
            raise DriverError(
                f"{label}: forward() returns the string {spec.arg.value!r} ({text}). A program "
                "returns tensors, and leaves out numbers, bools and None that never change: "
                "leave the string out of the result."
            )
        if isinstance(spec.arg, (ConstantArgument, TensorArgument)):
            continue
        if isinstance(spec.arg, SymBoolArgument):
            raise DriverError(
                f"{label}: forward() returns a bool that depends on data or sizes ({text}). Return "
                "a tensor: x.any() in place of x.any().item(), or torch.tensor(condition)."
            )
        raise DriverError(
            f"{label}: forward() returns a number that depends on sizes or data ({text}). "
            "Return a tensor, for example torch.tensor(x.shape[0])."
        )
    return specs


def describe_outputs(ep: ExportedProgram, symbols: Symbols, label: str) -> tuple[Output, ...]:
    """The tensors that forward() returns, named by their paths in the result.

    ``None`` and other constants in the result are not outputs.
    """
    specs = check_outputs(ep, label)
    paths = naming.result_paths(ep.call_spec.out_spec)
    nodes = {n.name: n.meta.get("val") for n in ep.graph.nodes}
    kept = []
    for spec, path in zip(specs, paths, strict=True):
        if isinstance(spec.arg, ConstantArgument):
            continue
        kept.append((path, nodes[spec.arg.name]))
    if not kept:
        raise DriverError(f"{label}: forward() returns no tensor, so there is nothing to compute")
    outputs = []
    for name, (path, value) in zip(naming.output_names([p for p, _ in kept]), kept):
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise DriverError(f'{label}: output "{name}" is {dtype}, which is not supported')
        shape = tuple(symbols.size(s) for s in value.shape)
        outputs.append(Output(name, naming.path_text(path), dtype, shape))
    return tuple(outputs)


def make_manifest(
    ep: ExportedProgram,
    graph: Path,
    *,
    label: str,
    name: str,
    strict: bool,
    dims: Dims,
    inputs: Sequence[Input],
    symbols: Symbols,
    guards: Sequence[SizeExpr] = (),
) -> ProgramManifest:
    return ProgramManifest(
        label=label,
        name=name,
        torch_version=torch.__version__,
        strict=strict,
        dims=dims.manifest_dims(),
        inputs=describe_inputs(ep, inputs, symbols, label),
        outputs=describe_outputs(ep, symbols, label),
        constants=graph_file.constants(ep),
        guards=tuple(guards),
        graph_sha256=hashlib.sha256(graph.read_bytes()).hexdigest(),
    )
