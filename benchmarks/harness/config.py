"""What the BUILD file says about the models (benchmarks/defs.bzl)."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

_SPEC = re.compile(r"(\w+)\[([^]]*)\](?: in (-?[\d.]+)\.\.(-?[\d.]+))?")


@dataclasses.dataclass(frozen=True)
class Input:
    """An input: sizes are numbers, or names of dims."""

    dtype: str
    sizes: tuple[str, ...]
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> Input:
        """From a spec such as "int64[batch, seq] in 0..127"."""
        match = _SPEC.fullmatch(text)
        if not match:
            raise ValueError(f'"{text}" is not a spec of an input')
        dtype, sizes, low, high = match.groups()
        names = tuple(size.strip() for size in sizes.split(",") if size.strip())
        return cls(dtype, names, float(low or -1), float(high or 1))

    @property
    def static(self) -> bool:
        return all(size.isdigit() for size in self.sizes)

    def shape(self, dims: dict[str, int]) -> tuple[int, ...]:
        return tuple(int(size) if size.isdigit() else dims[size] for size in self.sizes)


def _natural(name: str) -> list[tuple[str, int]]:
    """A key that sorts numbers within names by their value."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"(\D*)(\d*)", name)]


@dataclasses.dataclass(frozen=True)
class Model:
    """One model of the benchmark, its files found."""

    name: str
    title: str
    family: str
    precision: str
    build_precision: str
    entry_point: str
    weights: tuple[str, ...]
    inputs: dict[str, Input]
    cases: dict[str, dict[str, int]]
    start: str
    case_inputs: str
    onnx_variant: str
    tolerance: float
    tokens: dict[str, int]
    past_bytes: dict[str, int]
    unread_weights: tuple[str, ...]
    capability: str
    gguf: str
    runners: dict[str, str]
    without: dict[str, str]

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Model:
        fields = dict(fields)
        fields["inputs"] = {name: Input.parse(text) for name, text in fields["inputs"].items()}
        fields["weights"] = tuple(fields["weights"])
        fields["unread_weights"] = tuple(fields["unread_weights"])
        # The BUILD file's order is lost in JSON: "batch8" goes before "batch32".
        fields["cases"] = dict(sorted(fields["cases"].items(), key=lambda case: _natural(case[0])))
        return cls(**fields)

    @classmethod
    def read(cls, path: Path) -> Model:
        """A description as the harness has written it for its helpers: with absolute paths."""
        return cls.from_json(json.loads(path.read_text(encoding="utf-8")))

    @property
    def all_cases(self) -> tuple[str, ...]:
        """Those that are timed, and the one that a start is measured with."""
        return tuple(dict.fromkeys([*self.cases, self.start]))
