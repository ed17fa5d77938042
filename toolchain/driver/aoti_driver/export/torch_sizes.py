"""Converts torch's symbolic sizes, which are sympy expressions, to the contract's sizes and
back.
"""

from __future__ import annotations

from typing import Any, cast

import sympy
import torch
from sympy.printing.str import StrPrinter
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod
from torch.utils._sympy.printers import PythonPrinter

from aoti_driver.contract.size_expr import (
    TORCH_NAMES,
    Name,
    Number,
    Operation,
    SizeExpr,
    Truth,
    Unknown,
    UnsupportedError,
    operation,
)
from aoti_driver.export import python_sizes

_OPERATORS = {"FloorDiv": "//", "CleanDiv": "//", **{name: op for op, name in TORCH_NAMES.items()}}
_TERMS = StrPrinter()
# torch has its own classes; programs that it loads have sympy's.
_EXTREMES = (Max, Min, sympy.Max, sympy.Min)
_Max: Any = Max
_Min: Any = Min


def expression_of(size: Any) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def symbol(dim: str) -> sympy.Symbol:
    return sympy.Symbol(dim, integer=True)


def from_sympy(expression: sympy.Expr) -> SizeExpr:
    """The size, with terms in the order in which sympy prints them."""
    if expression.is_Symbol:
        return Name(str(expression))
    if expression.is_Integer:
        return Number(int(expression))
    if expression.is_Float:
        return Number(float(expression))
    if expression.is_Rational:
        return operation("/", Number(int(expression.p)), Number(int(expression.q)))
    if expression in (sympy.true, sympy.false):
        return Truth(bool(expression))
    if expression.is_Add:
        return _sum(expression)
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return operation("**", from_sympy(expression.base), Number(int(expression.exp)))
    if isinstance(expression, sympy.Abs):
        value = from_sympy(expression.args[0])
        return operation("max", value, operation("-", value))
    if isinstance(expression, (sympy.Function, *_EXTREMES)) and not expression.is_Piecewise:
        name = type(expression).__name__
        operands = expression.args
        if isinstance(expression, _EXTREMES):
            operands = sorted(operands, key=sympy.default_sort_key)
        return Operation(_OPERATORS.get(name, name), tuple(map(from_sympy, operands)))
    if isinstance(expression, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
        return operation(expression.rel_op, from_sympy(expression.lhs), from_sympy(expression.rhs))
    return Unknown()


def _sum(expression: sympy.Expr) -> SizeExpr:
    first, *others = _TERMS._as_ordered_terms(expression)
    result = from_sympy(first)
    for term in others:
        negative = bool(term.as_coeff_Mul()[0] < 0)
        size = from_sympy(-term if negative else term)
        result = operation("-" if negative else "+", result, size)
    return result


def _product(expression: sympy.Expr) -> SizeExpr:
    coefficient, rest = expression.as_coeff_Mul()
    number = abs(coefficient)
    factors = [from_sympy(factor) for factor in rest.as_ordered_factors()]
    multiplier = number.p if number.is_Rational else number
    if multiplier != 1:
        factors.insert(0, from_sympy(sympy.sympify(multiplier)))
    if coefficient < 0:
        factors[0] = operation("-", factors[0])
    result = factors[0]
    for factor in factors[1:]:
        result = operation("*", result, factor)
    if number.is_Rational and number.q != 1:
        return operation("/", result, Number(int(number.q)))
    return result


def condition_from_sympy(expression: sympy.Expr) -> SizeExpr:
    """The condition, with terms in the order in which torch prints guards."""
    return python_sizes.parse(PythonPrinter().doprint(expression))


def to_sympy(size: SizeExpr) -> sympy.Expr:
    """Raises UnsupportedError for functions that torch's analysis of ranges does not support."""
    match size:
        case Number(int(value)):
            return sympy.Integer(value)
        case Name(name):
            return symbol(name)
        case Operation("-", (operand,)):
            return -to_sympy(operand)
        case Operation("max" | "min" as name, operands):
            function = _Max if name == "max" else _Min
            return cast(sympy.Expr, function(*map(to_sympy, operands)))
        case Operation("+" | "-" | "*" | "//" | "%" | "**" as name, (left, right)):
            a, b = to_sympy(left), to_sympy(right)
            match name:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "//":
                    return FloorDiv(a, b)
                case "%":
                    return Mod(a, b)
            return a**b
    raise UnsupportedError(str(size))
