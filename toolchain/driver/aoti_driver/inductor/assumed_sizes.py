"""What Inductor assumes of sizes while it writes an operator, as in ``h > 6``.

Such a guard is not checked by a compiled program: the code would be wrong for other sizes. A guard
that leaves out sizes of 0 and 1 alone, also of results, is none of these: operators are general
from 2 on, and the test of every model compares the small ends of ranges.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.program_parts import Input
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.inductor.constant_sizes import Places
from aoti_driver.torch_internals import decomposition_table

# A guard, and the operator whose code is wrong where it does not hold.
Guard = tuple[Any, str]
# Inductor's own code of other operators is chosen by guards for its speed, or was not found to be
# wrong. In a decomposition of this project each branch decides about results.
_CHECKED = ("aten.diagonal.default", "aten.diagonal_copy.default")
# What evaluates a condition on sizes. The one who asks is the first caller outside of it.
_EVALUATES = ("torch.fx.experimental.", "torch.utils._sympy.", "sympy.")
# How many values of a size are tried at each end of its range, by the number of sizes.
_TRIED = {1: 20, 2: 6, 3: 2}


class _Recorded(list[Any]):
    def __init__(self, guards: Sequence[Any], found: list[Guard]) -> None:
        super().__init__(guards)
        self._found = found

    def append(self, guard: Any) -> None:
        operator = _written() or _decomposed()
        if operator is not None:
            self._found.append((guard.expr, operator))
        super().append(guard)


def _written() -> str | None:
    """The operator that Inductor writes, if its guards are checked."""
    from torch._inductor.virtualized import V

    node = getattr(V.graph, "current_node", None)  # None: it schedules what is written
    return str(node.target) if node is not None and str(node.target) in _CHECKED else None


def _decomposed() -> str | None:
    """The operator whose decomposition, which is one of this project, asks for the condition.

    Operators that it calls ask, too, as for strides, which does not decide about results.
    """
    frame = inspect.currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        # torch itself has the numbers that stand for sizes.
        if module not in (__name__, "torch") and not module.startswith(_EVALUATES):
            ours = module.startswith("aoti_driver.")
            return decomposition_table.decomposed() if ours else None
        frame = frame.f_back
    return None


@contextlib.contextmanager
def recorded(env: Any) -> Iterator[list[Guard]]:
    """The guards on sizes that are met. env: torch's ShapeEnv of the program, if it has one."""
    found: list[Guard] = []
    before = env.guards if env is not None else []
    if env is not None:
        env.guards = _Recorded(before, found)
    try:
        yield found
    finally:
        if env is not None:
            env.guards = list(env.guards)


def refuse(
    guards: Sequence[Guard],
    ranges: Mapping[sympy.Symbol, ValueRanges[Any]],
    places: Places,
    inputs: Sequence[Input],
    label: str,
) -> None:
    """Refuses a guard that does not hold for all declared sizes. ranges: those of the sizes before
    code was generated.
    """
    for guard, operator in guards:
        if isinstance(guard, sympy.Ne):  # an operator that does nothing special
            continue
        if says_more_than_one(guard):
            continue
        example = counterexample(guard, ranges)
        if example is None or not all(symbol in places for symbol in example):
            continue
        if not independent([inputs[i].shape[d] for i, d, _ in map(places.__getitem__, example)]):
            continue
        sizes = []
        for symbol, value in example.items():
            i, d, size = places[symbol]
            shape = inputs[i].shape[d]
            number = size.xreplace({symbol: sympy.Integer(value)})
            sizes.append(f'dim {d} ({shape}) of input "{inputs[i].path}" is {number}')
        raise DriverError(
            f"{label}: the code that is generated for {operator} (torch {torch.__version__}) "
            f"is wrong where {' and '.join(sizes)}: it is for some of the declared sizes alone. "
            "Replace the operator in forward(), or declare another range in dynamic_dims"
        )


def independent(sizes: Sequence[SizeExpr]) -> bool:
    """Whether each size has a dim of its own. Otherwise calls can't have all of their values."""
    dims = [dim for size in sizes for dim in size.dims]
    return all(len(size.dims) == 1 for size in sizes) and len(dims) == len(set(dims))


def says_more_than_one(guard: sympy.Basic) -> bool:
    """Whether a guard says that a size, here of a result, is more than 1, as ``4 * n > 4`` does.

    Inductor asks so for strides, and operators are general from 2 on.
    """
    if not isinstance(guard, sympy.StrictGreaterThan | sympy.StrictLessThan):
        return False
    _, denominator = sympy.fraction(sympy.together(sympy.expand(guard.gts / guard.lts)))
    return bool(guard.lts != 0 and denominator == 1)


def counterexample(
    guard: sympy.Basic, ranges: Mapping[sympy.Symbol, ValueRanges[Any]]
) -> dict[sympy.Symbol, int] | None:
    """Sizes of 2 and more for which a guard does not hold; None if none are found."""
    symbols = sorted(guard.free_symbols, key=str)
    tried = _TRIED.get(len(symbols))
    if tried is None or any(symbol not in ranges for symbol in symbols):
        return None
    values = []
    for symbol in symbols:
        low, high = max(int(ranges[symbol].lower), 2), int(min(ranges[symbol].upper, 2**31 - 1))
        ends = {*range(low, low + tried), *range(high - tried + 1, high + 1)}
        values.append(sorted(value for value in ends if low <= value <= high))
    for sizes in itertools.product(*values):
        example = dict(zip(symbols, sizes, strict=True))
        if guard.xreplace({s: sympy.Integer(n) for s, n in example.items()}) == sympy.false:
            return example
    return None
