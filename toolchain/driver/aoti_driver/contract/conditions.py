"""Conditions on the sizes of a call, as the manifest keeps them: ``"n % 100 == 0"``.

They are Python expressions over the names of dims, with Python's arithmetic (``//`` and ``%`` round
down). This module needs the standard library only.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import types
from collections.abc import Iterator, Mapping, Sequence

from aoti_driver.base.errors import DriverError

_NEAR = 4096
_COMBINATIONS = 50_000
_FUNCTIONS = {"max", "min", "float"}
_METHODS = {"trunc", "floor", "ceil", "sqrt"}
_SCOPE = {"max": max, "min": min, "float": float, "math": math, "__builtins__": {}}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)

Sizes = dict[str, int]
Ranges = Mapping[str, tuple[int, int]]


class UnsupportedError(ValueError):
    """The part of a condition that no call can be checked for."""


def parse(text: str) -> ast.expr:
    """The condition's syntax tree, if it has nothing but what this module describes."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise UnsupportedError(text) from e
    check(tree)
    return tree


def check(node: ast.expr) -> None:
    match node:
        case ast.BoolOp(values=parts):
            inner = parts
        case ast.Compare(left=left, ops=operators, comparators=others) if all(
            isinstance(o, _COMPARISONS) for o in operators
        ):
            inner = [left, *others]
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if (
            0 <= power <= 16
        ):
            inner = [left]
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(
            operator, _OPERATORS
        ) and not isinstance(operator, ast.Pow):
            inner = [left, right]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            inner = [operand]
        case ast.Constant(value=bool() | int() | float()) | ast.Name():
            inner = []
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
            name in _FUNCTIONS and arguments
        ):
            inner = arguments
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=[argument], keywords=[]
        ) if name in _METHODS:
            inner = [argument]
        case _:
            raise UnsupportedError(ast.unparse(node))
    for part in inner:
        check(part)


def mentioned(text: str) -> list[str]:
    """The dims in a condition, in the order in which it mentions them."""
    nodes = [n for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)]
    nodes.sort(key=lambda n: (n.lineno, n.col_offset))
    found = dict.fromkeys(n.id for n in nodes)
    return [name for name in found if name not in _FUNCTIONS and name != "math"]


@functools.lru_cache
def _compiled(text: str) -> types.CodeType:
    parse(text)
    return compile(text, "<condition>", "eval")


def holds(text: str, sizes: Mapping[str, int]) -> bool:
    try:
        return bool(eval(_compiled(text), dict(_SCOPE), dict(sizes)))
    except (ArithmeticError, ValueError):
        return False


def all_hold(conditions: Sequence[str], sizes: Mapping[str, int]) -> bool:
    return all(holds(text, sizes) for text in conditions)


def satisfied(conditions: Sequence[str], ranges: Ranges, wanted: Mapping[str, int]) -> Sizes | None:
    """Sizes near the wanted ones for which all conditions hold; None if none were found."""
    if all_hold(conditions, wanted):
        return dict(wanted)
    defined = _definitions(conditions, ranges)
    free = [name for name in ranges if name not in defined]
    alone = {name: [text for text in conditions if mentioned(text) == [name]] for name in free}
    choices = []
    budget = max(2, int(_COMBINATIONS ** (1 / max(1, len(free)))))
    related = {n for t in conditions for n in mentioned(t) if len(mentioned(t)) > 1}
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


def _definitions(conditions: Sequence[str], ranges: Ranges) -> dict[str, str]:
    """Dims that an equation gives from others: ``total == past + new``."""
    found: dict[str, str] = {}
    for text in conditions:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
            continue
        for one, other in (
            (node.left, node.comparators[0]),
            (node.comparators[0], node.left),
        ):
            used = mentioned(ast.unparse(other))
            if (
                isinstance(one, ast.Name)
                and one.id in ranges
                and one.id not in [*used, *found]
                and not any(one.id in mentioned(value) for value in found.values())
                and not set(used) & set(found)
                and len(node.ops) == 1
            ):
                found[one.id] = ast.unparse(other)
                break
    return found


def _define(sizes: Sizes, defined: Mapping[str, str], ranges: Ranges) -> bool:
    for name, text in defined.items():
        try:
            value = eval(_compiled(text), dict(_SCOPE), sizes)
        except (ArithmeticError, ValueError):
            return False
        low, high = ranges[name]
        if value != int(value) or not low <= value <= high:
            return False
        sizes[name] = int(value)
    return True


def _near(
    name: str, conditions: Sequence[str], bounds: tuple[int, int], wanted: Mapping[str, int]
) -> Iterator[int]:
    """The range's values, those first that are near to the wanted one or to what is told of."""
    low, high = bounds
    marks = [*wanted.values(), low, high]
    for text in conditions:
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                marks.append(node.value)
    start = min(max(wanted[name], low), high)
    near = (start + s * d for d in range(_NEAR + 1) for s in ((1, -1) if d else (1,)))
    beside = (mark + d for mark in marks for d in (0, 1, -1))
    first = itertools.islice(near, 16)
    seen = set()
    for value in itertools.chain(first, beside, near):
        if low <= value <= high and value not in seen:
            seen.add(value)
            yield value


def check_all(conditions: Sequence[str], dims: Sequence[str], label: str) -> None:
    """For readers of a manifest: every condition is one, of its dims."""
    for text in conditions:
        try:
            parse(text)
            unknown = [name for name in mentioned(text) if name not in dims]
        except UnsupportedError as e:
            raise DriverError(f'{label}: guard "{text}": "{e}" can\'t be checked') from e
        if unknown:
            raise DriverError(f'{label}: guard "{text}": there is no dim "{unknown[0]}"')
