"""Sizes and conditions on them as C++.

Conditions use Python's division, and integers that are wide enough for all products.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from aoti_driver.bindings.text import cpp_string
from aoti_driver.contract import polynomials
from aoti_driver.contract.polynomials import Polynomial, Quotient
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import (
    COMPARISONS,
    FUNCTIONS,
    Name,
    Number,
    Operation,
    SizeExpr,
    Truth,
    is_condition,
)

INCLUDES = """\
#include <algorithm>
#include <cmath>
#include <limits>
"""

HELPERS = """\
__extension__ typedef __int128 Wide;  // dims are of 64 bits, their products of more

// Python's // and %, which round down; nothing is defined for a divisor of 0.
[[maybe_unused]] Wide FloorDiv(Wide a, Wide b, bool& defined) {
  if (b == 0) return defined = false;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

[[maybe_unused]] Wide FloorMod(Wide a, Wide b, bool& defined) {
  return a - b * FloorDiv(a, b, defined);
}

[[maybe_unused]] double Divide(double a, double b, bool& defined) {
  if (b == 0) defined = false;
  return a / b;
}

// The largest number of 64 bits in place of a larger one.
[[maybe_unused]] std::int64_t Narrow(Wide size) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  return size > kLargest ? kLargest : static_cast<std::int64_t>(size);
}

[[maybe_unused]] constexpr Wide Power(Wide base, int exponent) {
  Wide result = 1;
  while (exponent-- > 0) result *= base;
  return result;
}"""


class CppSizes:
    """C++ code for sizes; the array ``dims`` has a value for each of the model's dims."""

    def __init__(self, dims: Sequence[Dim]) -> None:
        self._indices = {dim.name: i for i, dim in enumerate(dims)}
        self._normal = normal_forms(dims)

    def dim(self, dim: Dim) -> str:
        alias = f", {self.extent(dim.alias)}" if dim.alias is not None else ""
        return f"{{{cpp_string(dim.name)}, {dim.min}, {dim.max}{alias}}}"

    def extent(self, size: SizeExpr, name: str = "") -> str:
        """An ``aoti::Extent``: linear in one free dim, or computed by the function ``name``, from
        the dims ``k<name>Dims``.
        """
        if polynomials.computed(size):
            return f"{{0, -1, 0, {cpp_string(str(size))}, &{name}, k{name}Dims}}"
        scale, dim, offset = polynomials.affine(size, self._normal)
        index = -1 if dim is None else self._indices[dim]
        return f"{{{scale}, {index}, {offset}, {cpp_string(str(size))}}}"

    def size(self, size: SizeExpr) -> str:
        """An expression of type std::int64_t, for a size of an input; it uses ``defined``."""
        return f"Narrow({self._number(size)[0]})"

    def stride(self, size: SizeExpr) -> str:
        """An expression of type std::int64_t in the free dims; it may use ``defined``."""
        terms = []
        polynomial = polynomials.polynomial(size, self._normal)
        for term, factor in sorted(polynomial.items(), key=lambda item: (-len(item[0]), item[0])):
            parts = [self._factor(name) for name in term]
            if factor != 1 or not parts:
                parts.insert(0, str(factor))
            terms.append(" * ".join(parts))
        return " + ".join(terms) if terms else "0"

    def indices(self, expression: SizeExpr) -> list[str]:
        return [str(self._indices[name]) for name in expression.dims]

    def condition(self, condition: SizeExpr) -> str:
        """An expression of type bool; it may set ``defined`` to false."""
        match condition:
            case Operation("and" | "or" as name, parts):
                sign = " && " if name == "and" else " || "
                return f"({sign.join(map(self.condition, parts))})"
            case Operation("not", (operand,)):
                return f"!{self.condition(operand)}"
            case Operation(name, sides) if name in COMPARISONS:
                numbers = [self._number(side)[0] for side in sides]
                texts = [f"({a} {name} {b})" for a, b in itertools.pairwise(numbers)]
                return f"({' && '.join(texts)})"
            case Truth(value):
                return "true" if value else "false"
        return f"({self._number(condition)[0]} != 0)"

    def _factor(self, name: str) -> str:
        return self.size(name.size) if isinstance(name, Quotient) else self._variable(name)

    def _variable(self, name: str) -> str:
        return f"dims[{self._indices[name]}]"

    def _number(self, expression: SizeExpr) -> tuple[str, bool]:
        """A C++ expression, and whether it is a double; otherwise it is a Wide."""
        match expression:
            case Number(value) if value < 0:
                text, real = self._number(Number(-value))
                return f"(-{text})", real
            case Number(float(value)):
                return repr(value), True
            case Number(value):
                return f"Wide({value}LL)", False
            case Name(name):
                return f"Wide({self._variable(name)})", False
            case Operation("-", (operand,)):
                text, real = self._number(operand)
                return f"(-{text})", real
            case Operation("**", (base, Number(int(power)))):
                text, real = self._number(base)
                if real:
                    return f"({' * '.join([text] * power) or '1.0'})", True
                return f"Power({text}, {power})", False
            case Operation("float", (operand,)):
                return _real(self._number(operand)), True
            case Operation("sqrt", (operand,)):
                return f"std::sqrt({_real(self._number(operand))})", True
            case Operation(name, (operand,)) if name in FUNCTIONS:
                text, real = self._number(operand)
                return (f"Wide(std::{name}({text}))", False) if real else (text, False)
            case Operation("max" | "min" as name, operands):
                numbers = [self._number(operand) for operand in operands]
                real = any(is_real for _, is_real in numbers)
                kind = "double" if real else "Wide"
                texts = [_real(n) if real else n[0] for n in numbers]
                return f"std::{name}<{kind}>({{{', '.join(texts)}}})", real
            case Operation(name, (left, right)) if not is_condition(expression):
                return _arithmetic(name, self._number(left), self._number(right))
        return f"Wide({self.condition(expression)})", False


def normal_forms(dims: Sequence[Dim]) -> dict[str, Polynomial]:
    """Each dim as a polynomial in the free dims."""
    forms: dict[str, Polynomial] = {dim.name: {(dim.name,): 1} for dim in dims if dim.alias is None}
    derived = {d.name: polynomials.polynomial(d.alias) for d in dims if d.alias is not None}
    return forms | derived


def _arithmetic(name: str, left: tuple[str, bool], right: tuple[str, bool]) -> tuple[str, bool]:
    real = left[1] or right[1]
    if name == "/":
        return f"Divide({_real(left)}, {_real(right)}, defined)", True
    if name in ("+", "-", "*"):
        a, b = (_real(left), _real(right)) if real else (left[0], right[0])
        return f"({a} {name} {b})", real
    if real:
        quotient = f"std::floor(Divide({_real(left)}, {_real(right)}, defined))"
        if name == "//":
            return quotient, True
        return f"({_real(left)} - {_real(right)} * {quotient})", True
    function = "FloorDiv" if name == "//" else "FloorMod"
    return f"{function}({left[0]}, {right[0]}, defined)", False


def _real(number: tuple[str, bool]) -> str:
    return number[0] if number[1] else f"double({number[0]})"
