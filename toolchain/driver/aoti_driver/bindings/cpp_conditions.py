"""Conditions on sizes as C++: with Python's division, in integers that no product overflows."""

from __future__ import annotations

import ast
from collections.abc import Mapping

INCLUDES = """\
#include <algorithm>
#include <cmath>
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

[[maybe_unused]] constexpr Wide Power(Wide base, int exponent) {
  Wide result = 1;
  while (exponent-- > 0) result *= base;
  return result;
}"""

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def to_cpp(text: str, variables: Mapping[str, str]) -> str:
    """A C++ expression of type bool; it may set ``defined`` to false.

    ``text`` is one that ``conditions.parse`` takes, ``variables`` the C++ expression of each dim.
    """
    return _Printer(variables).condition(ast.parse(text, mode="eval").body)


class _Printer:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def condition(self, node: ast.expr) -> str:
        match node:
            case ast.BoolOp(op=operator, values=parts):
                sign = " && " if isinstance(operator, ast.And) else " || "
                return f"({sign.join(self.condition(part) for part in parts)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.condition(operand)}"
            case ast.Compare(left=left, ops=operators, comparators=others):
                sides = [left, *others]
                texts = [
                    self._comparison(operator, one, other)
                    for operator, one, other in zip(operators, sides, others)
                ]
                return f"({' && '.join(texts)})"
            case ast.Constant(value=bool(value)):
                return "true" if value else "false"
        return f"({self._number(node)[0]} != 0)"

    def _comparison(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> str:
        sign = _COMPARISONS[type(operator)]
        return f"({self._number(left)[0]} {sign} {self._number(right)[0]})"

    def _number(self, node: ast.expr) -> tuple[str, bool]:
        """A C++ expression, and whether it is a double; else it is a Wide."""
        match node:
            case ast.Constant(value=float(value)):
                return repr(value), True
            case ast.Constant(value=int(value)):
                return f"Wide({int(value)}LL)", False
            case ast.Name(id=name):
                return f"Wide({self._variables[name]})", False
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                text, real = self._number(operand)
                return f"(-{text})", real
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))):
                text, real = self._number(base)
                if real:
                    return f"({' * '.join([text] * power) or '1.0'})", True
                return f"Power({text}, {power})", False
            case ast.BinOp(left=left, op=operator, right=right):
                return self._arithmetic(operator, self._number(left), self._number(right))
            case ast.Call(func=ast.Name(id="float"), args=[argument]):
                return self._real(self._number(argument)), True
            case ast.Call(func=ast.Name(id=name), args=arguments):
                numbers = [self._number(argument) for argument in arguments]
                real = any(is_real for _, is_real in numbers)
                kind = "double" if real else "Wide"
                texts = [self._real(n) if real else n[0] for n in numbers]
                return f"std::{name}<{kind}>({{{', '.join(texts)}}})", real
            case ast.Call(func=ast.Attribute(attr="sqrt"), args=[argument]):
                return f"std::sqrt({self._real(self._number(argument))})", True
            case ast.Call(func=ast.Attribute(attr=name), args=[argument]):
                text, real = self._number(argument)
                return (f"Wide(std::{name}({text}))", False) if real else (text, False)
        return f"Wide({self.condition(node)})", False

    def _arithmetic(
        self, operator: ast.operator, left: tuple[str, bool], right: tuple[str, bool]
    ) -> tuple[str, bool]:
        real = left[1] or right[1]
        if isinstance(operator, ast.Div):
            return f"Divide({self._real(left)}, {self._real(right)}, defined)", True
        if sign := _ARITHMETIC.get(type(operator)):
            a, b = (self._real(left), self._real(right)) if real else (left[0], right[0])
            return f"({a} {sign} {b})", real
        if real:
            quotient = f"std::floor(Divide({self._real(left)}, {self._real(right)}, defined))"
            if isinstance(operator, ast.FloorDiv):
                return quotient, True
            return f"({self._real(left)} - {self._real(right)} * {quotient})", True
        function = "FloorDiv" if isinstance(operator, ast.FloorDiv) else "FloorMod"
        return f"{function}({left[0]}, {right[0]}, defined)", False

    @staticmethod
    def _real(number: tuple[str, bool]) -> str:
        return number[0] if number[1] else f"double({number[0]})"
