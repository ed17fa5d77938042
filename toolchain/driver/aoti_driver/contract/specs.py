"""Input specs: ``"int64[batch, seq] in 0..49151"``, ``"float in 0.1..2"``, ``"'mean'"``."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import grammar
from aoti_driver.contract.dims import Dims, check_used
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.polynomials import computed
from aoti_driver.contract.program_parts import NumberType
from aoti_driver.contract.size_expr import SizeExpr

# What a literal in ``inputs`` may be: an argument that is the same in every call.
Literal: TypeAlias = bool | int | float | str | tuple["Literal", ...] | None

_NUMBER_DTYPES = {"float": "float64", "int": "int64"}


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """A tensor: its dtype, its shape, and the range of its values (both ends included).

    Samples are drawn from the range. Calls are checked for it where the dtype is an integer's.
    number: for a Python number, which the program takes as a float64 or int64 tensor of rank 0: its
      type. value: the dim whose value an int is.
    """

    dtype: str
    shape: tuple[SizeExpr, ...]
    values: tuple[float, float] | None = None
    number: NumberType | None = None
    value: str | None = None

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        values = f" in {self.values[0]}..{self.values[1]}" if self.values else ""
        return f"{self.number or f'{self.dtype}[{shape}]'}{values}"

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(size.evaluate(dims) for size in self.shape)


def parse_specs(inputs: Mapping[str, str], dims: Dims, label: str) -> dict[str, TensorSpec]:
    """Parses every spec of ``inputs`` and checks that they use every dim."""
    specs: dict[str, TensorSpec] = {}
    nodes: list[grammar.Node] = []
    for name, value in inputs.items():
        text = grammar.Text(f'{label}: inputs["{name}"]', value)
        syntax = grammar.parse_spec(text)
        specs[name] = _spec(syntax, dims, text)
        nodes.extend(syntax.extents or ())
    check_used(dims, nodes, label)
    _check_computed(specs, label)
    return specs


def with_numbers(specs: Mapping[str, TensorSpec], dims: Dims) -> tuple[dict[str, TensorSpec], Dims]:
    """The specs and dims with a dim for each int among the specs, whose value it is."""
    result = dict(specs)
    for path, spec in specs.items():
        if spec.number == "int" and spec.values is not None:
            low, high = (int(value) for value in spec.values)
            dims, name = dims.with_number(path, (low, high))
            result[path] = dataclasses.replace(spec, value=name)
    return result, dims


def split_literals(inputs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Literal]]:
    """The specs among ``inputs``, and the arguments that are Python literals."""
    specs: dict[str, str] = {}
    literals: dict[str, Literal] = {}
    for name, text in inputs.items():
        try:
            value = ast.literal_eval(text.strip())
        except (SyntaxError, ValueError):
            specs[name] = text
            continue
        if not _is_literal(value):
            specs[name] = text
            continue
        literals[name] = value
    return specs, literals


def _is_literal(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _check_computed(specs: Mapping[str, TensorSpec], label: str) -> None:
    """A call gives each dim its value by a size that is neither a sum nor a quotient."""
    sizes = [(name, size) for name, spec in specs.items() for size in spec.shape]
    known = {dim for _, size in sizes if not computed(size) for dim in size.dims}
    for name, size in sizes:
        for dim in size.dims if computed(size) else ():
            if dim not in known:
                raise DriverError(
                    f'{label}: inputs["{name}"]: "{size}" needs the value of "{dim}", which no '
                    f"other size gives. Some input must have a size with this dim alone, as in "
                    f'"float32[{dim}, 8]"; or give this size a dim of its own.'
                )


def specs_from_manifest(manifest: ProgramManifest) -> dict[str, TensorSpec]:
    """The specs of a frozen program's inputs, by input name."""
    return {
        i.name: TensorSpec(i.dtype, i.shape, i.values, i.number, i.value) for i in manifest.inputs
    }


def _spec(syntax: grammar.SpecSyntax, dims: Dims, text: grammar.Text) -> TensorSpec:
    dtype = syntax.dtype
    if syntax.extents is None:
        return _number(syntax, text)
    if dtype.name not in DTYPES:
        text.fail(
            f'unknown dtype "{dtype.name}"{did_you_mean(dtype.name, DTYPES)}',
            dtype.start,
            dtype.end,
            f"dtypes: {listed(DTYPES)}",
        )
    shape = []
    for node in syntax.extents:
        size = dims.size(node, text)
        if dims.range(size)[0] < 0:
            why = f" for the smallest {size.dims[0]}" if size.dims else ""
            text.fail(f"a size cannot be negative: this one is{why}", node.start, node.end)
        shape.append(size)
    values = _values(dtype.name, syntax.values, text) if syntax.values else None
    return TensorSpec(dtype.name, tuple(shape), values)


def _number(syntax: grammar.SpecSyntax, text: grammar.Text) -> TensorSpec:
    kind: NumberType = "int" if syntax.dtype.name == "int" else "float"
    dtype = _NUMBER_DTYPES[kind]
    values = _values(dtype, syntax.values, text) if syntax.values else None
    if kind == "float":
        return TensorSpec(dtype, (), values, kind)
    start, end = syntax.dtype.start, syntax.dtype.end
    if values is None or syntax.values is None:
        text.fail(
            "an int needs a range, which the program is exported and tested for",
            start,
            end,
            'write for example "int in 1..50"; for one value alone, write the value, as in "5"',
        )
    span = syntax.values.start, syntax.values.end
    if values[0] == values[1]:
        text.fail("the range has one value only", *span, f'write the value: "{int(values[0])}"')
    return TensorSpec(dtype, (), values, kind)


def _values(dtype: str, syntax: grammar.Range, text: grammar.Text) -> tuple[float, float]:
    if DTYPES[dtype].kind == "complex":
        text.fail(f"{dtype} values have no order, so no range", syntax.start, syntax.end)
    low, high = syntax.low, syntax.high
    if limits := DTYPES[dtype].range:
        for end in (low, high):
            if not isinstance(end.value, int):
                text.fail(f"values of {dtype} are integers", end.start, end.end)
            if not limits[0] <= end.value <= limits[1]:
                text.fail(
                    f"{dtype} holds {limits[0]} to {limits[1]}, not {end.value}",
                    end.start,
                    end.end,
                )
    if low.value > high.value:
        text.fail(
            f"the range is empty: {low.value} is larger than {high.value}",
            syntax.start,
            syntax.end,
            f'did you mean "{high.value}..{low.value}"?',
        )
    return low.value, high.value
