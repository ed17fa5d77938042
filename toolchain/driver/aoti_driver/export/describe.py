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

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import naming
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.polynomials import computed
from aoti_driver.contract.program_parts import FixedArgument, Input, Output
from aoti_driver.contract.result_tree import Result
from aoti_driver.contract.size_expr import SizeExpr, Unknown
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export import index_inputs, results
from aoti_driver.export.precision import FLOAT32
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
    follow: list[tuple[sympy.Expr, sympy.Expr]] = []
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
            if computed(declared):
                follow.append((exported, to_sympy(declared)))
                continue
            root = next(iter(exported.free_symbols))
            solution = sympy.solve(exported - to_sympy(declared), root)
            if len(solution) == 1:
                expressions.setdefault(root, sympy.expand(solution[0]))
    # Such a size is a symbol of its own if forward() does not relate it to its dims.
    for exported, value in follow:
        if isinstance(exported, sympy.Symbol):
            expressions.setdefault(exported, value)
    return Symbols(expressions)


def check_ranges(ep: ExportedProgram, symbols: Symbols, dims: Dims, label: str) -> None:
    """The program must be valid for the whole declared range (0 and 1 are checked separately)."""
    for root, expression in symbols.expressions.items():
        known = ep.range_constraints.get(root)
        if known is None or not isinstance(expression, sympy.Symbol):
            continue
        low, high = dims.ranges[str(expression)]
        least = low if low < 0 else max(low, 2)
        if known.upper < high or known.lower > least:
            lowest = low if known.lower <= least else int(known.lower)
            best = lowest, min(high, int(known.upper))
            name = str(expression)
            place, text = dims.declared_text(name, *best)
            suggested = dims.numbers.get(name, dims.declared_name(name))
            raise DriverError(
                f"{label}: {place}: the model works only for {dims.range_text(name, *best)}, but "
                f"{dims.range_text(name, low, high)} is declared.\n"
                f'  Suggested fix: "{suggested}": "{text}"'
            )


def specialised(label: str, path: str, index: int, declared: SizeExpr, size: int) -> str:
    return (
        f'{label}: input "{path}": dim {index} ({declared}) was declared dynamic, but the model '
        f"works for the size {size} only. Write {size} in its place in inputs and remove "
        "the dim from dynamic_dims, or change the line of the model that fixes it."
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


def describe_outputs(
    ep: ExportedProgram, symbols: Symbols, replaced: results.Replaced, label: str
) -> tuple[tuple[Output, ...], Result | None]:
    """The tensors that forward() returns, named by their paths in the result, and the result.

    ``None`` and other constants in the result are not outputs.
    """
    nodes = {n.name: n.meta.get("val") for n in ep.graph.nodes}
    names, tree = results.result_of(ep, replaced, label)
    pairs = results.output_specs(ep)
    kept = [(p, spec.arg.name) for p, spec in pairs if not results.is_constant(spec)]
    if not kept:
        raise DriverError(f"{label}: forward() returns no tensor, so there is nothing to compute")
    outputs = []
    for name, (path, node) in zip(names, kept, strict=True):
        value = nodes[node]
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise DriverError(f'{label}: output "{name}" is {dtype}, which is not supported')
        shape = tuple(symbols.size(s) for s in value.shape)
        text = naming.path_text(path)
        outputs.append(Output(name, text, dtype, shape, replaced.numbers.get(node)))
    return tuple(outputs), tree


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
    replaced: results.Replaced = results.NOTHING_REPLACED,
    fixed: Sequence[FixedArgument] = (),
    precision: str = FLOAT32,
) -> ProgramManifest:
    """replaced: what results.replace() returned."""
    outputs, result = describe_outputs(ep, symbols, replaced, label)
    return ProgramManifest(
        label=label,
        name=name,
        torch_version=torch.__version__,
        strict=strict,
        dims=dims.manifest_dims(),
        inputs=describe_inputs(ep, inputs, symbols, label),
        outputs=outputs,
        constants=graph_file.constants(ep),
        guards=tuple(guards),
        result=result,
        fixed=tuple(fixed),
        precision=precision,
        graph_sha256=hashlib.sha256(graph.read_bytes()).hexdigest(),
    )
