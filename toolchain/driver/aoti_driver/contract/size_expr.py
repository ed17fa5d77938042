"""Sizes, and conditions on them, as immutable expressions that all steps share.

A size is an integer, a dim, or an operation on sizes; a condition compares sizes. The arithmetic is
Python's: ``//`` and ``%`` round down, ``/`` is a float. :mod:`polynomials` has the normal form of
sizes, :mod:`conditions` operations on conditions, and :mod:`size_json` their form in the manifest.
This module needs only the standard library.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
}
LARGEST_EXPONENT = 16

_EXTREMES = ("max", "min")
_LOGICAL = ("and", "or")
_COMPUTED: Mapping[str, Callable[..., Any]] = {
    **COMPARISONS,
    **ARITHMETIC,
    **FUNCTIONS,
    "max": max,
    "min": min,
    "not": operator.not_,
}
OPERATORS = frozenset([*_COMPUTED, *_LOGICAL])


class UnsupportedError(ValueError):
    """A part of an expression that has no value, or that can't be checked in a call."""


@dataclasses.dataclass(frozen=True)
class SizeExpr:
    """The base of the classes below."""

    def __str__(self) -> str:
        """The text for people: torch's notation for a size, Python's for a condition."""
        if is_condition(self):
            return python_text(self)
        text = _Printer(python=False).text(self)
        divided = isinstance(self, Operation) and self.operator == "//"
        return text[1:-1] if divided else text

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims in the expression, in the order in which they occur."""
        return tuple(dict.fromkeys(_mentioned(self)))

    def evaluate(self, dims: Mapping[str, int]) -> Any:
        """The value for the given values of the dims; UnsupportedError if it has none.

        Raises ArithmeticError or ValueError if Python can't compute it, for example for a division
        by 0.
        """
        return self._function(dims)

    @functools.cached_property
    def _function(self) -> Callable[[Mapping[str, int]], Any]:
        """The function of the dims: conditions are tried for thousands of sizes."""
        match self:
            case Number(value) | Truth(value):
                return lambda dims: value
            case Name(name):
                return operator.itemgetter(name)
            case Operation(name, operands) if name in OPERATORS:
                return _computed(name, [operand._function for operand in operands])
        raise UnsupportedError(str(self))


@dataclasses.dataclass(frozen=True)
class Number(SizeExpr):
    value: int | float


@dataclasses.dataclass(frozen=True)
class Truth(SizeExpr):
    value: bool


@dataclasses.dataclass(frozen=True)
class Name(SizeExpr):
    """A dim."""

    name: str


@dataclasses.dataclass(frozen=True)
class Operation(SizeExpr):
    """An operator or function with its operands.

    ``operator`` is one of Python's (``-`` may also have one operand, and a comparison may have
    several, as in ``2 <= n <= 8``), ``max``, ``min``, one of FUNCTIONS, or the name of a function
    of torch, which can be printed but not evaluated here.
    """

    operator: str
    operands: tuple[SizeExpr, ...]


@dataclasses.dataclass(frozen=True)
class Unknown(SizeExpr):
    """A size that depends on data."""


def operation(name: str, *operands: SizeExpr) -> SizeExpr:
    """An Operation, or an integer for a negated integer."""
    match name, operands:
        case "-", (Number(value),):
            return Number(-value)
    return Operation(name, operands)


def affine(scale: int, dim: str | None, offset: int) -> SizeExpr:
    """``scale * dim + offset``; the integer ``offset`` if ``dim`` is None."""
    if dim is None or scale == 0:
        return Number(offset)
    term = Name(dim) if scale == 1 else operation("*", Number(scale), Name(dim))
    if offset == 0:
        return term
    return operation("+" if offset > 0 else "-", term, Number(abs(offset)))


def is_condition(expression: SizeExpr) -> bool:
    return isinstance(expression, Truth) or (
        isinstance(expression, Operation)
        and expression.operator in ("not", *_LOGICAL, *COMPARISONS)
    )


def _computed(
    name: str, parts: Sequence[Callable[[Mapping[str, int]], Any]]
) -> Callable[[Mapping[str, int]], Any]:
    if name in _LOGICAL:
        every = all if name == "and" else any
        return lambda dims: every(part(dims) for part in parts)
    compute: Callable[..., Any] = _COMPUTED[name]
    if name in COMPARISONS and len(parts) > 2:
        pairs = [_computed(name, pair) for pair in itertools.pairwise(parts)]
        return _computed("and", pairs)
    if len(parts) == 1:
        (first,) = parts
        compute = operator.neg if name == "-" else compute
        return lambda dims: compute(first(dims))
    if len(parts) == 2:
        first, second = parts
        return lambda dims: compute(first(dims), second(dims))
    return lambda dims: compute(*[part(dims) for part in parts])


def _mentioned(expression: SizeExpr) -> list[str]:
    match expression:
        case Name(name):
            return [name]
        case Operation(operands=parts):
            return [name for part in parts for name in _mentioned(part)]
    return []


def python_text(expression: SizeExpr) -> str:
    """The expression as ``ast.unparse`` would print it."""
    return _Printer(python=True).text(expression)


# The precedence of operators: a larger number binds more tightly.
_LEVELS = {"or": 0, "and": 1, "not": 2, "+": 8, "-": 8, "*": 9, "/": 9, "//": 9, "%": 9, "**": 11}
_COMPARISON, _NEGATION, _POWER, _ATOM = 3, 10, 12, 13
# torch's names of functions in sizes.
TORCH_NAMES = {
    "max": "Max",
    "min": "Min",
    "%": "Mod",
    "float": "ToFloat",
    "trunc": "TruncToInt",
    "floor": "FloorToInt",
    "ceil": "CeilToInt",
    "sqrt": "OpaqueUnaryFn_sqrt",
}
# torch puts parentheses around these, as around a comparison.
_LOOSE = {"%", "PythonMod", "ModularIndexing", "Where", "IntTrueDiv", "FloatTrueDiv"}


class _Printer:
    """Prints like ``ast.unparse``, or like torch's symbols: ``2*seq``, ``Max(1, seq)``."""

    def __init__(self, python: bool) -> None:
        self._python = python
        self._space = " " if python else ""

    def text(self, expression: SizeExpr, least: int = 0) -> str:
        """``least``: the level that needs no parentheses around it."""
        text, level = self._printed(expression)
        return f"({text})" if level < least else text

    def _printed(self, expression: SizeExpr) -> tuple[str, int]:
        match expression:
            case Number(value):
                text = str(value) if self._python or isinstance(value, int) else _as_torch(value)
                return text, _ATOM if value >= 0 else _NEGATION
            case Truth(value):
                return str(value), _ATOM
            case Name(name):
                return name, _ATOM
            case Operation("-", (operand,)):
                return f"-{self.text(operand, _NEGATION)}", _NEGATION
            case Operation("not", (operand,)):
                return f"not {self.text(operand, _LEVELS['not'])}", _LEVELS["not"]
            case Operation("and" | "or" as name, parts):
                # Python's printer requires that each operand binds more tightly than the previous
                # one.
                level = _LEVELS[name]
                texts = [self.text(part, level + 1 + i) for i, part in enumerate(parts)]
                return f" {name} ".join(texts), level
            case Operation(name, parts) if name in COMPARISONS:
                texts = [self.text(part, _COMPARISON + 1) for part in parts]
                return f" {name} ".join(texts), _COMPARISON
            case Operation("**", (base, exponent)):
                sign = f"{self._space}**{self._space}"
                text = f"{self.text(base, _POWER)}{sign}{self.text(exponent, _LEVELS['**'])}"
                return text, _LEVELS["**"]
            case Operation("//", (left, right)) if not self._python:
                return f"({self._divided(left)}//{self._divided(right)})", _ATOM
            case Operation(name, (left, right)) if name in ARITHMETIC and (
                self._python or name != "%"
            ):
                level = _LEVELS[name]
                sign = f" {name} " if name in "+-" else f"{self._space}{name}{self._space}"
                return f"{self.text(left, level)}{sign}{self.text(right, level + 1)}", level
            case Operation(name, parts):
                text = f"{self._function(name)}({', '.join(map(self.text, parts))})"
                return text, _COMPARISON if name in _LOOSE and not self._python else _ATOM
        return "?", _ATOM

    def _function(self, name: str) -> str:
        if not self._python:
            return TORCH_NAMES.get(name, name)
        return f"math.{name}" if name in FUNCTIONS and name != "float" else name

    def _divided(self, operand: SizeExpr) -> str:
        """In a division, torch puts parentheses around functions too."""
        bare = isinstance(operand, Operation) and operand.operator not in _EXTREMES
        return f"({self.text(operand)})" if bare else self.text(operand, _ATOM)


def _as_torch(value: float) -> str:
    text = f"{value:.15g}"
    return text if set(text) & set(".en") else f"{text}.0"
