"""Whole numbers that a model makes of quotients of sizes, as in ``int(h / 2)``.

torch has a symbol for ``h / 2``, but ``int()`` must return a number of Python's, so torch asks for
the size's value, which fixes it. What ``math.ceil`` and ``math.floor`` return stays a symbol, but
torch can prove little about it. Here all of them are quotients of integers, such as ``(h + 1) //
2``, where that is exact.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import sympy
import torch
from torch.utils._sympy.functions import FloatTrueDiv, IntTrueDiv, ToFloat

from aoti_driver.torch_internals import patching

_T = TypeVar("_T")
# Between these, float64 has all integers, and a quotient that is rounded does not reach the next
# integer.
_EXACT = 2**53


def kept(trace: Callable[[], _T]) -> _T:
    """What ``trace`` returns. If a module calls ``int()`` with a quotient of sizes, it traces once
    more, with an ``int`` in this module that keeps sizes.
    """
    modules: list[dict[str, Any]] = []
    with _quotients_of_integers(modules):
        try:
            result = trace()
        except Exception:
            if not modules:
                raise
            return _with_sizes(trace, modules)
        if not modules:
            return result
        try:
            return _with_sizes(trace, modules)
        except Exception:  # the sizes may be constants, as those of dims that are "auto"
            return result


def _with_sizes(trace: Callable[[], _T], modules: list[dict[str, Any]]) -> _T:
    """Traces until no other module calls ``int()`` with a quotient."""
    while True:
        known = len(modules)
        try:
            with _keeping_sizes(modules):
                result = trace()
        except Exception:
            if len(modules) == known:
                raise
        else:
            if len(modules) == known:
                return result


class _IntOfModel(type):
    """``int`` for all other purposes."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (torch.SymInt, torch.SymFloat)):
            number: Any = args[0]
            return math.trunc(number)
        return builtins.int(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, builtins.int)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is builtins.int

    def __hash__(cls) -> int:
        return hash(builtins.int)


class _Int(int, metaclass=_IntOfModel):
    pass


@contextlib.contextmanager
def _keeping_sizes(modules: list[dict[str, Any]]) -> Iterator[None]:
    changed = list(modules)
    for module in changed:
        module["int"] = _Int
    try:
        yield
    finally:
        for module in changed:
            module.pop("int", None)


@contextlib.contextmanager
def _quotients_of_integers(modules: list[dict[str, Any]]) -> Iterator[None]:
    """Adds to ``modules`` those that call ``int()`` with a float that varies."""
    places = {
        name: f"torch:SymFloat.{name}" for name in ("__int__", "__trunc__", "__floor__", "__ceil__")
    }
    to_int, trunc, floor, ceil = map(patching.original, places.values())

    def noted(number: torch.SymFloat) -> Any:
        module = sys._getframe(1).f_globals
        package = module["__name__"].partition(".")[0]
        own = "int" not in module and package not in ("torch", "aoti_driver")
        if own and all(module is not other for other in modules):
            modules.append(module)
        return to_int(number)

    def replacement(rounding: Callable[[Any], int], original: Any) -> Any:
        def rounded(number: torch.SymFloat) -> Any:
            env = number.node.shape_env
            exact = _quotient(number)
            if exact is None:
                # Programs in files have no floor.
                positive = env.bound_sympy(number.node.expr).lower >= 0
                return (trunc if rounding is math.floor and positive else original)(number)
            size, scale, divisor = exact
            # Operators on it are written to the program.
            whole = env.create_symintnode(size, hint=_sample(env, size)) * scale
            return (whole + (divisor - 1 if rounding is math.ceil else 0)) // divisor

        return rounded

    replacements = {
        places["__int__"]: noted,
        places["__trunc__"]: replacement(math.trunc, trunc),
        places["__floor__"]: replacement(math.floor, floor),
        places["__ceil__"]: replacement(math.ceil, ceil),
    }
    with patching.replaced(replacements):
        yield


def _quotient(number: torch.SymFloat) -> tuple[sympy.Expr, int, int] | None:
    """A size, its factor and a divisor, of a quotient that is exact enough and not negative."""
    found = _parts(number.node.expr)
    if found is None:
        return None
    size, scale, _ = found
    ends = number.node.shape_env.bound_sympy(size)
    if scale < 0 or ends.lower < 0 or not ends.upper * scale < _EXACT:
        return None
    return found


def _parts(expression: sympy.Expr) -> tuple[sympy.Expr, int, int] | None:
    if isinstance(expression, ToFloat):
        return expression.args[0], 1, 1
    if isinstance(expression, IntTrueDiv):
        size, divisor = expression.args
        return (size, 1, int(divisor)) if divisor.is_Integer and divisor > 0 else None
    if isinstance(expression, FloatTrueDiv):
        found, divisor = _parts(expression.args[0]), expression.args[1]
        if found and found[1:] == (1, 1) and divisor.is_Float and float(divisor).is_integer():
            return (found[0], 1, int(divisor)) if divisor > 0 else None
        return None
    if expression.is_Mul:
        factor, rest = expression.as_coeff_Mul()
        found = _parts(rest)
        if found and found[1:] == (1, 1) and factor.is_Float:
            # A float is a fraction: its divisor is a power of two.
            return (found[0], *float(factor).as_integer_ratio())
    return None


def _sample(env: Any, size: sympy.Expr) -> int | None:
    value = size.xreplace(env.backed_var_to_val)
    return int(value) if value.is_Integer else None
