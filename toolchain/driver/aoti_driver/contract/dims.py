"""The dims of a model: free dims with a range, and dims derived from them (``"2*half"``)."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import math
import re
from collections.abc import Iterable, Mapping

import sympy

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import polynomials
from aoti_driver.contract.grammar import (
    Name,
    Negation,
    Node,
    Number,
    Operation,
    Range,
    Text,
    parse_dim,
)
from aoti_driver.contract.polynomials import Polynomial
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import SizeExpr, affine

_LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Dims:
    """The resolved dims, in the order of their declaration.

    ranges: the range of each free dim, both ends included. A dim whose range has a single value is
      not a dim for torch.export: it is kept in ``fixed``.
    derived: for each derived dim, its size in terms of a free dim (or a static size).
    mentions: for each derived dim, the dims in its expression.
    numbers: the free dims that are the value of an int argument: its path.
    steps: the free dims that count the steps of a declared dim: that dim. ``batch`` in
      ``8..512 step 8`` is derived: ``8*batch_steps``.
    """

    ranges: Mapping[str, tuple[int, int]]
    fixed: Mapping[str, int]
    derived: Mapping[str, SizeExpr]
    order: tuple[str, ...]
    mentions: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    steps: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def with_number(self, path: str, values: tuple[int, int]) -> tuple[Dims, str]:
        """The dims with one for the value of an int argument, and its name."""
        name = re.sub(r"\W+", "_", path).strip("_")
        while name in self.order:
            name += "_value"
        added = dataclasses.replace(
            self,
            ranges={**self.ranges, name: values},
            order=(*self.order, name),
            numbers={**self.numbers, name: path},
        )
        return added, name

    def declared_text(self, name: str, low: int, high: int) -> tuple[str, str]:
        """The place in which a free dim's range is declared, and a range as it is written there."""
        text = self.range_text(name, low, high)
        if name in self.numbers:
            return f'inputs["{self.numbers[name]}"]', f"int in {text}"
        return f'dynamic_dims["{self.declared_name(name)}"]', text

    def range_text(self, name: str, low: int, high: int) -> str:
        """A range of a free dim, as a range of the dim that the user declared."""
        if name not in self.steps:
            return f"{low}..{high}"
        size = self.derived[self.steps[name]]
        zero, one, first, last = (size.evaluate({name: n}) for n in (0, 1, low, high))
        return f"{first}..{last} step {one - zero}"

    def declared_name(self, name: str) -> str:
        """The dim of ``dynamic_dims`` that a free dim stands for."""
        return self.steps.get(name, name)

    def declared_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes of free dims as those of the dims that the user declared."""
        return {
            self.declared_name(name): self.derived[self.steps[name]].evaluate({name: size})
            if name in self.steps
            else size
            for name, size in sizes.items()
        }

    def size(self, node: Node, text: Text) -> SizeExpr:
        """Reduces an expression to a sum of multiples of free dims and of quotients, or fails with
        the reason.
        """
        known = [name for name in self.order if name not in self.steps]
        written = polynomials.linear(_linear(node, text, known))
        values: dict[str, Polynomial] = {name: {(name,): 1} for name in known}
        values |= {name: polynomials.constant(size) for name, size in self.fixed.items()}
        values |= {name: polynomials.polynomial(size) for name, size in self.derived.items()}
        return polynomials.linear(polynomials.polynomial(written, values))

    def range(self, size: SizeExpr) -> tuple[int, int]:
        """The smallest and the largest value of a size."""
        low, high = ({name: self.ranges[name][end] for name in size.dims} for end in (0, 1))
        return size.evaluate(low), size.evaluate(high)

    def manifest_dims(self) -> tuple[Dim, ...]:
        """The dims of the manifest, without those that have a single value."""
        result = []
        for name in self.order:
            if name in self.ranges:
                result.append(Dim(name, *self.ranges[name]))
            elif name in self.derived and self.derived[name].dims:
                size = self.derived[name]
                result.append(Dim(name, *self.range(size), alias=size))
        return tuple(result)


NO_DIMS = Dims({}, {}, {}, ())


def parse_dims(declared: Mapping[str, str], label: str) -> Dims:
    """Parses ``dynamic_dims``; every error names the entry and points at the character."""
    ranges: dict[str, tuple[int, int]] = {}
    fixed: dict[str, int] = {}
    stepped: dict[str, SizeExpr] = {}
    steps: dict[str, str] = {}
    order: list[str] = []
    pending: dict[str, tuple[Node, Text]] = {}
    for name, value in declared.items():
        text = Text(f'{label}: dynamic_dims["{name}"]', value)
        if not name.isidentifier() or keyword.iskeyword(name) or name == "in":
            raise DriverError(
                f'{label}: dynamic_dims: "{name}" cannot be the name of a dim: '
                "use letters, digits and underscores, and no keyword"
            )
        syntax = parse_dim(text)
        if isinstance(syntax, Name) and syntax.name == "auto" and "auto" not in declared:
            text.fail(
                '"auto" is for models that are exported from their source',
                syntax.start,
                syntax.end,
                'give a range, such as "1..64", or a relation to another dim',
            )
        order.append(name)
        if isinstance(syntax, Range):
            low, high = _bounds(syntax, text)
            step = _step(syntax, low, high, text)
            if low == high:
                fixed[name] = low
            elif step > 1:
                counter = f"{name}_steps"
                while counter in declared or counter in steps:
                    counter += "_"
                steps[counter] = name
                order.append(counter)
                ranges[counter] = (low // step, high // step)
                stepped[name] = affine(step, counter, low % step)
            else:
                ranges[name] = (low, high)
        elif isinstance(syntax, Number):
            text.fail(
                "a dim needs a range, not a single size",
                syntax.start,
                syntax.end,
                f"write {syntax.value} in place of {name} in inputs, or give a range such as "
                f'"1..{max(2, int(syntax.value))}"',
            )
        else:
            pending[name] = (syntax, text)
    known = Dims(ranges, fixed, stepped, tuple(order), steps=steps)
    derived = _resolve(pending, known)
    mentions = {name: tuple(names(node)) for name, (node, _) in pending.items()}
    mentions |= {name: (counter,) for counter, name in steps.items()}
    return dataclasses.replace(known, derived=derived, mentions=mentions)


def check_used(dims: Dims, sizes: Iterable[Node], label: str) -> None:
    """Refuses dims that no input mentions, directly or through a derived dim's expression."""
    mentioned = {name for node in sizes for name in names(node)}
    used = set()
    reached = list(mentioned)
    while reached:
        name = reached.pop()
        used.add(name)
        reached.extend(n for n in dims.mentions.get(name, ()) if n not in used)
    for name in dims.order:
        if name in used:
            continue
        raise DriverError(
            f'{label}: dynamic_dims["{name}"]: no input has a dim "{name}". '
            f"Dims that inputs mention: {listed(sorted(mentioned))}. "
            f'Write it in an input\'s shape, as in "float32[{name}, 8]", or remove it.'
        )


def names(node: Node) -> list[str]:
    """The names that an expression mentions."""
    if isinstance(node, Name):
        return [node.name]
    if isinstance(node, Negation):
        return names(node.operand)
    if isinstance(node, Operation):
        return names(node.left) + names(node.right)
    return []


def _bounds(syntax: Range, text: Text) -> tuple[int, int]:
    for end in (syntax.low, syntax.high):
        if not isinstance(end.value, int):
            text.fail("the ends of a dim's range must be integers", end.start, end.end)
        if end.value < 0:
            text.fail("a size cannot be negative", end.start, end.end)
        if end.value > _LARGEST:
            text.fail(f"the largest size is {_LARGEST}", end.start, end.end)
    low, high = int(syntax.low.value), int(syntax.high.value)
    if low > high:
        text.fail(
            f"the range is empty: {low} is larger than {high}",
            syntax.start,
            syntax.end,
            f'did you mean "{high}..{low}"?',
        )
    return low, high


def _step(syntax: Range, low: int, high: int, text: Text) -> int:
    if syntax.step is None:
        return 1
    step, span = syntax.step.value, (syntax.step.start, syntax.step.end)
    if not isinstance(step, int) or step < 1:
        text.fail("a step must be a positive integer", *span)
    rest = (high - low) % step
    if rest:
        text.fail(
            f"{high} is not among the sizes {low}, {low + step}, ...",
            syntax.high.start,
            syntax.high.end,
            f'did you mean "{low}..{high - rest} step {step}"?',
        )
    return step


def _resolve(pending: Mapping[str, tuple[Node, Text]], known: Dims) -> dict[str, SizeExpr]:
    derived = dict(known.derived)

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in derived or name not in pending:
            return
        node, text = pending[name]
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            text.fail(f"dims are derived from each other: {cycle}", node.start, node.end)
        for other in names(node):
            visit(other, (*path, name))
        scope = dataclasses.replace(known, derived=derived)
        size = scope.size(node, text)
        if len(size.dims) > 1:
            text.fail(
                f"a derived dim can have only one dim, not {listed(sorted(size.dims))}",
                node.start,
                node.end,
                f"write the sum in place of {name} in inputs",
            )
        if scope.range(size)[0] < 0:
            smallest = "".join(size.dims)
            text.fail(f"{name} would be negative for the smallest {smallest}", node.start, node.end)
        derived[name] = size

    for name in pending:
        visit(name, ())
    return derived


def _linear(node: Node, text: Text, known: Iterable[str]) -> Polynomial:
    """The terms of an expression, of which each grows with one dim."""
    terms = _polynomial(node, text, list(known))
    span = (node.start, node.end)
    if any(len(term) > 1 for term in terms):
        text.fail("an expression must be linear in its dims, as in 2*half + 1", *span)
    for term, scale in terms.items():
        if term and scale < 0:
            text.fail(
                f"an expression must grow with its dims, this one shrinks as {term[0]} grows", *span
            )
    return terms


def _polynomial(node: Node, text: Text, known: list[str]) -> Polynomial:
    if isinstance(node, Number):
        return polynomials.constant(int(node.value))
    if isinstance(node, Name):
        if node.name not in known:
            text.fail(
                f'unknown dim "{node.name}"{did_you_mean(node.name, known)}',
                node.start,
                node.end,
                f"dims declared in dynamic_dims: {listed(known)}",
            )
        return {(node.name,): 1}
    minus_one = polynomials.constant(-1)
    if isinstance(node, Negation):
        return polynomials.multiply(minus_one, _polynomial(node.operand, text, known))
    if node.operator == "//" and isinstance(node.right, Number):
        return polynomials.divide(_linear(node.left, text, known), int(node.right.value))
    left, right = _polynomial(node.left, text, known), _polynomial(node.right, text, known)
    if node.operator == "*":
        return polynomials.multiply(left, right)
    return polynomials.add(
        left, right if node.operator == "+" else polynomials.multiply(minus_one, right)
    )


def sample_sizes(dims: Dims, declared: Iterable[SizeExpr], smooth: bool = False) -> dict[str, int]:
    """A size for each free dim, which is always the same, for tracing the model.

    Sizes are in the (geometric) middle of the range. They avoid 0 and 1, each other and every
    static size if the range permits: torch.export assumes that sizes that are equal once are always
    equal. Primes are preferred, because they divide nothing; with ``smooth``, multiples of a power
    of two are used, for models that need divisible sizes.
    """
    known = list(declared)
    taken = {0, 1} | {s.evaluate({}) for s in known if not s.dims}
    sizes: dict[str, int] = {}
    for name, (low, high) in dims.ranges.items():
        own = [s for s in known if s.dims == (name,)] or [affine(1, name, 0)]
        middle = max(2, round(math.sqrt(max(low, 1) * max(high, 1))))
        start = max(low, min(middle, high) - 256)
        window = range(start, min(high, start + 512) + 1)
        cost = functools.partial(_cost, name, own, frozenset(taken), middle, smooth)
        sizes[name] = min(window, key=cost)
        taken |= {s.evaluate(sizes) for s in [*own, *known] if set(s.dims) <= set(sizes)}
    return sizes


def _cost(
    name: str, own: list[SizeExpr], taken: frozenset[int], middle: int, smooth: bool, size: int
) -> tuple[bool, int, int, int, int]:
    values = {s.evaluate({name: size}) for s in own}
    preferred = -min(size & -size, 32) if smooth else 0 if sympy.isprime(size) else 1
    return bool(values & {-1, 0, 1}), len(values & taken), preferred, abs(size - middle), size
