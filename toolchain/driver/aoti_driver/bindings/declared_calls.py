"""The calls of a function that its attributes declare, as many as tell its variants apart.

A call is a value, a dtype and rank, or a number for each input, and a size for each dim. The sizes
that are tried are those next to the ends of all ranges, with every remainder of the steps: for
ranges and steps, nothing between them differs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from aoti_driver.bindings.model import Method, Space
from aoti_driver.contract import conditions, dims, grammar, polynomials
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.size_expr import python_text
from aoti_driver.contract.specs import TensorSpec, parse_specs, split_literals, with_numbers

# Calls that are tried, about, and of one choice of alternatives at least.
_MOST_CALLS = 20_000
_LEAST_CALLS = 500
_LONGEST_PERIOD = 16
_FLOATS = (-1e30, 0.0, 1e30)
_NAME = re.compile(r"[A-Za-z_]\w*")

Number: TypeAlias = int | float


@dataclasses.dataclass(frozen=True)
class Passed:
    """What a call passes for an input: the text of a value, a number, or a tensor."""

    literal: str | None = None
    number: Number | None = None
    dtype: str = ""
    sizes: tuple[int, ...] = ()
    shown: bool = True  # in messages

    @property
    def text(self) -> str:
        if self.literal is not None:
            return self.literal
        if self.number is not None:
            return repr(self.number)
        return f"{self.dtype}{list(self.sizes)}"


Call: TypeAlias = Mapping[str, Passed]  # by the input's path


@dataclasses.dataclass
class Ends:
    """Of one dim or number: values next to which something may change, and steps."""

    ends: set[Number] = dataclasses.field(default_factory=set)
    steps: set[int] = dataclasses.field(default_factory=set)


def sizes_of(
    where: str, space: Space, variants: Sequence[Space], methods: Sequence[Method]
) -> dict[str, Ends]:
    """By dim, and by the path of a number."""
    found: dict[str, Ends] = {}
    for one in [space, *variants]:
        for name, text in one.dynamic_dims.items():
            syntax = grammar.parse_dim(grammar.Text(f'{where}: dynamic_dims["{name}"]', text))
            if not isinstance(syntax, grammar.Range):
                continue
            entry = found.setdefault(name, Ends())
            entry.ends |= {int(syntax.low.value), int(syntax.high.value)}
            if syntax.step is not None:
                entry.steps.add(int(syntax.step.value))
        for path, alternatives in one.inputs.items():
            for text in alternatives:
                literals = split_literals({path: text})[1]
                value = literals.get(path)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    found.setdefault(path, Ends()).ends.add(value)
                elif path not in literals:
                    spec = grammar.parse_spec(grammar.Text(where, text))
                    if spec.extents is None and spec.values is not None:
                        found.setdefault(path, Ends()).ends |= {
                            spec.values.low.value,
                            spec.values.high.value,
                        }
                    elif spec.extents is not None:
                        # A size in place of a dim.
                        _add_static(found, space.inputs.get(path, ()), spec.extents)
                        _add_divisors(found, spec.extents)
    for method in methods:
        for guard in method.model.program.guards:
            numbers = set(conditions.integers(guard))
            for dim in guard.dims:
                entry = found.setdefault(dim, Ends())
                entry.ends |= numbers
                if "%" in python_text(guard):
                    entry.steps |= {n for n in numbers if n > 0}
    return found


def _add_static(
    found: dict[str, Ends], declared: Iterable[str], ours: Sequence[grammar.Node]
) -> None:
    """Adds the sizes that a variant has where the declared input has a dim alone."""
    for text in split_literals({text: text for text in declared})[0]:
        theirs = grammar.parse_spec(grammar.Text("", text)).extents or ()
        for one, dim in zip(ours, theirs) if len(ours) == len(theirs) else ():
            if isinstance(one, grammar.Number) and isinstance(dim, grammar.Name):
                found.setdefault(dim.name, Ends()).ends.add(one.value)


def _add_divisors(found: dict[str, Ends], sizes: Iterable[grammar.Node]) -> None:
    for size in sizes:
        if isinstance(size, grammar.Operation):
            _add_divisors(found, (size.left, size.right))
            if size.operator == "//" and isinstance(size.right, grammar.Number):
                for name in dims.names(size.left):
                    found.setdefault(name, Ends()).steps.add(int(size.right.value))


def calls(where: str, space: Space, found: Mapping[str, Ends]) -> Iterator[Call]:
    """The declared calls that differ for the variants."""
    choices = list(_choices(space.inputs))
    share = max(_LEAST_CALLS, _MOST_CALLS // len(choices))
    for chosen, absent in choices:
        texts, literals = split_literals(chosen)
        absent_dims = _given(itertools.chain(*space.inputs.values()), space.dynamic_dims)
        absent_dims -= _given(texts.values(), space.dynamic_dims)
        # As in the program for these calls: see aoti_variant.bzl.
        dynamic_dims = {**space.dynamic_dims, **dict.fromkeys(absent_dims, "0..0")}
        declared, specs = _parsed(where, texts, dynamic_dims)
        floats = {path: spec for path, spec in specs.items() if spec.number == "float"}
        most = int(share ** (1 / max(1, len(declared.ranges) + len(floats))))
        tried = [_tried(declared, name, found)[:most] for name in declared.ranges]
        tried += [_floats(spec, found.get(path, Ends()))[:most] for path, spec in floats.items()]
        for point in itertools.product(*tried):
            values = {name: int(n) for name, n in zip(declared.ranges, point)}
            numbers = dict(zip(floats, point[len(values) :]))
            call = dict(absent)
            for path in chosen:
                if path in literals:
                    call[path] = Passed(literal=repr(literals[path]))
                elif specs[path].value is not None:
                    call[path] = Passed(number=values[str(specs[path].value)])
                elif path in numbers:
                    call[path] = Passed(number=numbers[path])
                else:
                    call[path] = Passed(dtype=specs[path].dtype, sizes=specs[path].sizes(values))
            yield call


def _choices(
    inputs: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[dict[str, str], dict[str, Passed]]]:
    """One alternative of each input; and what a structure that is None, or is not, leaves out."""
    parts = {
        root: [path for path in inputs if path.startswith((f"{root}[", f"{root}."))]
        for root, alternatives in inputs.items()
        if alternatives == ("None",)
    }
    roots = [root for root, found in parts.items() if found]
    for is_none in itertools.product((True, False), repeat=len(roots)):
        absent: dict[str, Passed] = {}
        for root, none in zip(roots, is_none):
            for path in parts[root] if none else [root]:
                absent[path] = Passed(literal="None" if none else "'given'", shown=False)
        rest = {path: found for path, found in inputs.items() if path not in absent}
        for choice in itertools.product(*rest.values()):
            yield dict(zip(rest, choice)), absent


def _given(texts: Iterable[str], dynamic_dims: Mapping[str, str]) -> set[str]:
    """The free dims that have a value by a size without another dim, and without a division."""
    found = set()
    for text in split_literals({text: text for text in texts})[0]:
        for size in text.partition("[")[2].partition("]")[0].split(","):
            names = set(_NAME.findall(size)) & set(dynamic_dims)
            if len(names) == 1 and "//" not in size:
                name = names.pop()
                # A derived dim's text has one other dim.
                if others := set(_NAME.findall(dynamic_dims[name])) & set(dynamic_dims):
                    name = others.pop()
                found.add(name)
    return found


def _parsed(
    where: str, texts: Mapping[str, str], dynamic_dims: Mapping[str, str]
) -> tuple[Dims, Mapping[str, TensorSpec]]:
    """The dims that these inputs have, and the inputs."""
    mentioned = set(_NAME.findall(" ".join([*texts.values()])))
    reached = list(mentioned & set(dynamic_dims))
    used = set(reached)
    while reached:
        others = set(_NAME.findall(dynamic_dims[reached.pop()]))
        reached += others & set(dynamic_dims) - used
        used |= others & set(dynamic_dims)
    declared = dims.parse_dims({n: t for n, t in dynamic_dims.items() if n in used}, where)
    specs, declared = with_numbers(parse_specs(texts, declared, where), declared)
    return declared, specs


def _tried(declared: Dims, name: str, found: Mapping[str, Ends]) -> list[Number]:
    """The values of a free dim that are tried, the ends of ranges first."""
    low, high = declared.ranges[name]
    entry = found.get(declared.numbers.get(name, declared.declared_name(name)), Ends())
    if name in declared.steps:
        # Counted in steps: the ends of sizes become those of the count.
        size = declared.derived[declared.steps[name]]
        scale, _, offset = polynomials.affine(size)
        entry = Ends({(int(end) - offset) // scale for end in entry.ends}, {*entry.steps})
    period = min(math.lcm(*entry.steps), _LONGEST_PERIOD) if entry.steps else 1
    ends = [low, high, *sorted(int(end) for end in entry.ends if math.isfinite(end))]
    # Of steps with a long period, a multiple and its neighbours.
    ends += [-(-low // step) * step for step in sorted(entry.steps)]
    values = [end + k for k in (0, -1, *range(1, period + 1)) for end in ends]
    return [value for value in dict.fromkeys(values) if low <= value <= high]


def _floats(spec: TensorSpec, entry: Ends) -> list[Number]:
    low, high = spec.values or (-math.inf, math.inf)
    ends = sorted({float(end) for end in entry.ends if math.isfinite(end)} | {*_FLOATS})
    middle = [(a + b) / 2 for a, b in itertools.pairwise(ends)]
    return [value for value in dict.fromkeys([*ends, *middle]) if low <= value <= high]
