"""Sizes of a grid, which are expressions of a kernel's integers, as C++."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from aoti_driver.base.errors import DriverError, listed

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
}
_FUNCTIONS = {"cdiv": "CeilDiv", "min": "Min", "max": "Max"}


def to_cpp(
    grid: Sequence[str], integers: Mapping[str, str], constants: Mapping[str, Any], label: str
) -> str:
    """``GridSize`` expressions (runtime/cuda/grid_size.h), with commas between them.

    integers: the C++ names of the parameters that a size may be computed from.
    """
    known = {
        **{name: f"GridSize({cpp})" for name, cpp in integers.items()},
        **{
            name: f"GridSize({value})"
            for name, value in constants.items()
            if isinstance(value, int) and not isinstance(value, bool)
        },
    }

    def write(node: ast.expr, text: str) -> str:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int(value)) if 0 <= value < 2**63:
                return f"GridSize({value})"
            case ast.Name(id=name) if name in known:
                return known[name]
            case ast.Name(id=name):
                raise DriverError(
                    f'{label}: grid: "{text}" has the name {name}; expected integers of the '
                    f"signature and of constants: {listed(sorted(known))}"
                )
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return f"({write(left, text)} {_OPERATORS[type(op)]} {write(right, text)})"
            case ast.Call(func=ast.Name(id=name), args=[first, second], keywords=[]) if (
                name in _FUNCTIONS
            ):
                return f"{_FUNCTIONS[name]}({write(first, text)}, {write(second, text)})"
        raise DriverError(
            f'{label}: grid: "{text}" is not an expression of integers with +, -, *, //, %, '
            "cdiv(a, b), min(a, b) and max(a, b)"
        )

    def parse(text: str) -> ast.expr:
        try:
            return ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return ast.Constant(None)  # no size either

    return ", ".join(write(parse(text), text) for text in grid)
