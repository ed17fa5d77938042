"""Proves that a condition on sizes holds for all sizes in their ranges, or for none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import sympy
from torch.utils._sympy.functions import Max, Min
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from aoti_driver.contract import conditions
from aoti_driver.contract.conditions import Ranges
from aoti_driver.contract.size_expr import (
    COMPARISONS,
    Operation,
    SizeExpr,
    Truth,
    UnsupportedError,
)
from aoti_driver.export.torch_sizes import to_sympy

_TRIED = 20_000


def proved(condition: SizeExpr, ranges: Ranges) -> bool:
    """Whether a condition holds for all sizes in the ranges; False if that is not known."""
    tried = _by_trying(condition, ranges)
    return tried if tried is not None else _truth(condition, ranges) is True


def refuted(condition: SizeExpr, ranges: Ranges) -> bool:
    """Whether a condition holds for no sizes in the ranges; False if that is not known."""
    names = condition.dims
    if _few(names, ranges):
        values = [range(ranges[n][0], ranges[n][1] + 1) for n in names]
        return not any(
            conditions.holds(condition, dict(zip(names, v))) for v in itertools.product(*values)
        )
    return _truth(condition, ranges) is False


def _few(names: Sequence[str], ranges: Ranges) -> bool:
    if any(name not in ranges for name in names):
        return False
    return math.prod(ranges[n][1] - ranges[n][0] + 1 for n in names) <= _TRIED


def _by_trying(condition: SizeExpr, ranges: Ranges) -> bool | None:
    names = condition.dims
    if not _few(names, ranges):
        return None
    values = [range(ranges[n][0], ranges[n][1] + 1) for n in names]
    return all(conditions.holds(condition, dict(zip(names, v))) for v in itertools.product(*values))


def _truth(condition: SizeExpr, ranges: Ranges) -> bool | None:
    match condition:
        case Operation("and" | "or" as name, parts):
            truths = [_truth(part, ranges) for part in parts]
            decisive = name == "or"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case Operation("not", (operand,)):
            truth = _truth(operand, ranges)
            return None if truth is None else not truth
        case Operation(name, sides) if name in COMPARISONS:
            pairs = itertools.pairwise(sides)
            truths = [_compare(name, one, other, ranges) for one, other in pairs]
            return False if False in truths else None if None in truths else True
        case Truth(value):
            return value
    return None


def _compare(sign: str, left: SizeExpr, right: SizeExpr, ranges: Ranges) -> bool | None:
    try:
        difference = sympy.expand(to_sympy(left) - to_sympy(right))
    except UnsupportedError:
        return None
    return _compare_zero(sign, _folded(difference, ranges), ranges)


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


def _compare_zero(sign: str, difference: sympy.Expr, ranges: Ranges) -> bool | None:
    """Whether ``difference`` has this relation to 0 for all sizes in the ranges; None if
    unknown.
    """
    low, high = _bounds(difference, ranges)
    positive, negative = low > 0, high < 0
    match sign:
        case "==" | "!=":
            equal: bool | None = None
            if difference == 0:
                equal = True
            elif positive or negative or _never_whole(difference):
                equal = False
            if equal is None or sign == "==":
                return equal
            return not equal
        case ">":
            return True if positive else False if high <= 0 else None
        case ">=":
            return True if low >= 0 else False if negative else None
        case "<":
            return True if negative else False if low >= 0 else None
        case "<=":
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
