"""Proves that a condition on sizes holds for all sizes in their ranges, or for none."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from aoti_driver.contract import conditions
from aoti_driver.contract.conditions import Ranges, UnsupportedError

_TRIED = 20_000
_Max: Any = Max
_Min: Any = Min


def proved(text: str, ranges: Ranges) -> bool:
    """Whether a condition holds for all sizes in the ranges; False if that is not known."""
    tried = _by_trying(text, ranges)
    return tried if tried is not None else _truth(tree_of(text), ranges) is True


def refuted(text: str, ranges: Ranges) -> bool:
    """Whether a condition holds for no sizes in the ranges; False if that is not known."""
    names = conditions.mentioned(text)
    if _few(names, ranges):
        values = [range(ranges[n][0], ranges[n][1] + 1) for n in names]
        return not any(
            conditions.holds(text, dict(zip(names, v))) for v in itertools.product(*values)
        )
    return _truth(tree_of(text), ranges) is False


def tree_of(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _few(names: Sequence[str], ranges: Ranges) -> bool:
    if any(name not in ranges for name in names):
        return False
    return math.prod(ranges[n][1] - ranges[n][0] + 1 for n in names) <= _TRIED


def _by_trying(text: str, ranges: Ranges) -> bool | None:
    names = conditions.mentioned(text)
    if not _few(names, ranges):
        return None
    values = [range(ranges[n][0], ranges[n][1] + 1) for n in names]
    return all(conditions.holds(text, dict(zip(names, v))) for v in itertools.product(*values))


def _truth(node: ast.expr, ranges: Ranges) -> bool | None:
    match node:
        case ast.BoolOp(op=operator, values=parts):
            truths = [_truth(part, ranges) for part in parts]
            decisive = isinstance(operator, ast.Or)
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = _truth(operand, ranges)
            return None if truth is None else not truth
        case ast.Compare(left=left, ops=operators, comparators=others):
            sides = [left, *others]
            truths = [
                _compare(operator, one, other, ranges)
                for operator, one, other in zip(operators, sides, sides[1:])
            ]
            return False if False in truths else None if None in truths else True
        case ast.Constant(value=value):
            return bool(value)
    return None


def _compare(operator: ast.cmpop, left: ast.expr, right: ast.expr, ranges: Ranges) -> bool | None:
    try:
        difference = sympy.expand(_sympy(left) - _sympy(right))
    except UnsupportedError:
        return None
    return _compare_zero(operator, _folded(difference, ranges), ranges)


def _folded(expression: sympy.Expr, ranges: Ranges) -> sympy.Expr:
    """Replaces functions that are constant in the ranges, such as ``min(8, 8 + 8*past)``, by
    numbers.
    """
    constants = {}
    for function in expression.atoms(sympy.Function, Max, Min):
        low, high = _bounds(function, ranges)
        if low == high:
            constants[function] = low
    return sympy.expand(expression.subs(constants)) if constants else expression


def _compare_zero(operator: ast.cmpop, difference: sympy.Expr, ranges: Ranges) -> bool | None:
    """Whether ``difference`` has this relation to 0 for all sizes in the ranges; None if
    unknown.
    """
    low, high = _bounds(difference, ranges)
    positive, negative = low > 0, high < 0
    match operator:
        case ast.Eq() | ast.NotEq():
            equal: bool | None = None
            if difference == 0:
                equal = True
            elif positive or negative or _never_whole(difference):
                equal = False
            if equal is None or isinstance(operator, ast.Eq):
                return equal
            return not equal
        case ast.Gt():
            return True if positive else False if high <= 0 else None
        case ast.GtE():
            return True if low >= 0 else False if negative else None
        case ast.Lt():
            return True if negative else False if low >= 0 else None
        case ast.LtE():
            return True if high <= 0 else False if positive else None
    return None


def _never_whole(difference: sympy.Expr) -> bool:
    """``2*a - 4*b + 1`` is never 0, because all coefficients are even and 1 is not."""
    constant, terms = difference.as_coeff_add()
    factors = [term.as_coeff_Mul()[0] for term in terms]
    if not constant.is_Integer or not factors or not all(f.is_Integer for f in factors):
        return False
    return bool(int(constant) % math.gcd(*(int(f) for f in factors)))


def _bounds(expression: sympy.Expr, ranges: Ranges) -> tuple[Any, Any]:
    """The least and the greatest value, or known bounds of them."""
    known = {
        symbol: ValueRanges(*ranges[str(symbol)])
        for symbol in expression.free_symbols
        if str(symbol) in ranges
    }
    if len(known) != len(expression.free_symbols):
        return -sympy.oo, sympy.oo
    try:
        bound = bound_sympy(expression, known)
        low, high = bound.lower, bound.upper
    except Exception:  # torch's analysis fails for some functions, with many types of errors
        low, high = -sympy.oo, sympy.oo
    # A subexpression that is not a polynomial counts as a variable of its own.
    atoms: dict[sympy.Expr, sympy.Symbol] = {}
    for function in expression.atoms(sympy.Function, Max, Min):
        try:
            inner = bound_sympy(function, known)
        except Exception:
            return low, high
        variable = sympy.Symbol(f"_{len(atoms)}", integer=True)
        atoms[function] = variable
        known[variable] = inner
    flat = expression.subs(atoms)
    free = sorted(flat.free_symbols, key=str)
    if not free or not flat.is_polynomial(*free) or len(free) > 4:
        return low, high
    for ends in itertools.product((True, False), repeat=len(free)):
        values = [known[s].lower if at_low else known[s].upper for s, at_low in zip(free, ends)]
        if not all(value.is_Integer for value in values):
            continue
        # Every variable is written as an end of its range plus or minus a step that is not
        # negative.
        steps = [sympy.Symbol(f"step{i}", nonnegative=True) for i in range(len(free))]
        moved = {
            s: end + step if at_low else end - step
            for s, end, step, at_low in zip(free, values, steps, ends)
        }
        polynomial = sympy.Poly(sympy.expand(flat.subs(moved, simultaneous=True)), *steps)
        constant = polynomial.eval(dict(zip(steps, [0] * len(steps))))
        rest = [c for c, m in zip(polynomial.coeffs(), polynomial.monoms()) if any(m)]
        if all(c >= 0 for c in rest):
            low = max(low, constant)
        if all(c <= 0 for c in rest):
            high = min(high, constant)
    return low, high


def _sympy(node: ast.expr) -> sympy.Expr:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return sympy.Integer(value)
        case ast.Name(id=name):
            return sympy.Symbol(name, integer=True)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_sympy(operand)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _sympy(left), _sympy(right)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv():
                    return FloorDiv(a, b)
                case ast.Mod():
                    return Mod(a, b)
                case ast.Pow():
                    return a**b
        case ast.Call(func=ast.Name(id="max"), args=arguments):
            return cast(sympy.Expr, _Max(*map(_sympy, arguments)))
        case ast.Call(func=ast.Name(id="min"), args=arguments):
            return cast(sympy.Expr, _Min(*map(_sympy, arguments)))
    raise UnsupportedError(ast.unparse(node))
