"""Evaluates conditions on the sizes of a call, such as ``n % 100 == 0``, and finds sizes that
satisfy them.

This module needs only the standard library.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.size_expr import (
    OPERATORS,
    Name,
    Number,
    Operation,
    SizeExpr,
    Unknown,
    UnsupportedError,
    python_text,
)

_NEAR = 4096
_COMBINATIONS = 50_000

Sizes = dict[str, int]
Ranges = Mapping[str, tuple[int, int]]


def check(condition: SizeExpr) -> None:
    """Raises UnsupportedError for a condition without a value."""
    if isinstance(condition, Unknown):
        raise UnsupportedError(str(condition))
    if isinstance(condition, Operation):
        if condition.operator not in OPERATORS:
            raise UnsupportedError(str(condition))
        for part in condition.operands:
            check(part)


def holds(condition: SizeExpr, sizes: Mapping[str, int]) -> bool:
    try:
        return bool(condition.evaluate(sizes))
    except (ArithmeticError, ValueError):
        return False


def all_hold(conditions: Sequence[SizeExpr], sizes: Mapping[str, int]) -> bool:
    return all(holds(condition, sizes) for condition in conditions)


def satisfied(
    conditions: Sequence[SizeExpr], ranges: Ranges, wanted: Mapping[str, int]
) -> Sizes | None:
    """Sizes near the wanted ones for which all conditions hold; None if none were found."""
    if all_hold(conditions, wanted):
        return dict(wanted)
    defined = _definitions(conditions, ranges)
    free = [name for name in ranges if name not in defined]
    alone = {name: [c for c in conditions if c.dims == (name,)] for name in free}
    choices = []
    budget = max(2, int(_COMBINATIONS ** (1 / max(1, len(free)))))
    related = {name for c in conditions for name in c.dims if len(c.dims) > 1}
    for name in free:
        fit = [
            value
            for value in _near(name, conditions, ranges[name], wanted)
            if all_hold(alone[name], {name: value})
        ]
        if name in related:
            choices.append(fit[:budget])
        else:
            choices.append(sorted(fit, key=lambda value: abs(value - wanted[name]))[:1])

    def distance(values: tuple[int, ...]) -> int:
        return sum(abs(value - wanted[name]) for name, value in zip(free, values))

    for values in sorted(itertools.product(*choices), key=distance):
        sizes = dict(zip(free, values))
        if _define(sizes, defined, ranges) and all_hold(conditions, sizes):
            return {name: sizes[name] for name in ranges}
    return None


def _definitions(conditions: Sequence[SizeExpr], ranges: Ranges) -> dict[str, SizeExpr]:
    """The dims that an equation defines by others: ``total == past + new``."""
    found: dict[str, SizeExpr] = {}
    for condition in conditions:
        match condition:
            case Operation("==", (left, right)):
                pass
            case _:
                continue
        for one, other in ((left, right), (right, left)):
            used = other.dims
            if (
                isinstance(one, Name)
                and one.name in ranges
                and one.name not in [*used, *found]
                and not any(one.name in value.dims for value in found.values())
                and not set(used) & set(found)
            ):
                found[one.name] = other
                break
    return found


def _define(sizes: Sizes, defined: Mapping[str, SizeExpr], ranges: Ranges) -> bool:
    for name, expression in defined.items():
        try:
            value = expression.evaluate(sizes)
        except (ArithmeticError, ValueError):
            return False
        low, high = ranges[name]
        if value != int(value) or not low <= value <= high:
            return False
        sizes[name] = int(value)
    return True


def _near(
    name: str, conditions: Sequence[SizeExpr], bounds: tuple[int, int], wanted: Mapping[str, int]
) -> Iterator[int]:
    """The values in the range, beginning with those near the wanted value or near constants in the
    conditions.
    """
    low, high = bounds
    marks = [*wanted.values(), low, high]
    for condition in conditions:
        marks += integers(condition)
    start = min(max(wanted[name], low), high)
    near = (start + s * d for d in range(_NEAR + 1) for s in ((1, -1) if d else (1,)))
    beside = (mark + d for mark in marks for d in (0, 1, -1))
    first = itertools.islice(near, 16)
    seen = set()
    for value in itertools.chain(first, beside, near):
        if low <= value <= high and value not in seen:
            seen.add(value)
            yield value


def integers(expression: SizeExpr) -> Iterator[int]:
    """The integers in an expression."""
    match expression:
        case Number(int(value)):
            yield value
        case Operation(operands=parts):
            for part in parts:
                yield from integers(part)


def check_all(conditions: Sequence[SizeExpr], dims: Sequence[str], label: str) -> None:
    """Checks the conditions of a manifest: each can be evaluated, and has only the manifest's
    dims.
    """
    for condition in conditions:
        text = python_text(condition)
        try:
            check(condition)
            unknown = [name for name in condition.dims if name not in dims]
        except UnsupportedError as e:
            raise DriverError(f'{label}: guard "{text}": "{e}" can\'t be checked') from e
        if unknown:
            raise DriverError(f'{label}: guard "{text}": there is no dim "{unknown[0]}"')
