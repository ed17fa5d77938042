"""Input specs: ``"int64[batch, seq] in 0..49151"``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from aoti_driver.base.errors import did_you_mean, listed
from aoti_driver.contract import grammar
from aoti_driver.contract.dims import Dims, check_used
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.size_expr import SizeExpr


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """A tensor: its dtype, its shape, and the range of its values (both ends included).

    Samples are drawn from the range. Calls are checked for it where the dtype is an integer's.
    """

    dtype: str
    shape: tuple[SizeExpr, ...]
    values: tuple[float, float] | None = None

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        values = f" in {self.values[0]}..{self.values[1]}" if self.values else ""
        return f"{self.dtype}[{shape}]{values}"

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
        nodes.extend(syntax.extents)
    check_used(dims, nodes, label)
    return specs


def specs_from_manifest(manifest: ProgramManifest) -> dict[str, TensorSpec]:
    """The specs of a frozen program's inputs, by input name."""
    return {i.name: TensorSpec(i.dtype, i.shape, i.values) for i in manifest.inputs}


def _spec(syntax: grammar.SpecSyntax, dims: Dims, text: grammar.Text) -> TensorSpec:
    dtype = syntax.dtype
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
