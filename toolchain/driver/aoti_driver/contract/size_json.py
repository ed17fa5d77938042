"""Sizes in the manifest: ``3``, ``"seq"``, ``["+", ["*", 2, "half"], 1]``.

A list is an operator or function with its operands, and ``"?"`` is a size that depends on data.
This module needs only the standard library.
"""

from __future__ import annotations

import math
from typing import Any

from aoti_driver.contract.size_expr import (
    ARITHMETIC,
    FUNCTIONS,
    LARGEST_EXPONENT,
    OPERATORS,
    Name,
    Number,
    Operation,
    SizeExpr,
    Truth,
    Unknown,
    operation,
)

_UNKNOWN = "?"
# Sums and products of several operands are one list.
_ASSOCIATIVE = ("+", "*")
_EXPONENTS = [Number(n) for n in range(LARGEST_EXPONENT + 1)]


def to_json(expression: SizeExpr) -> Any:
    match expression:
        case Number(value) | Truth(value):
            return value
        case Name(name):
            return name
        case Operation(name, (Operation() as first, *rest)) if (
            name in _ASSOCIATIVE and first.operator == name
        ):
            return [*to_json(first), *map(to_json, rest)]
        case Operation(name, parts):
            return [name, *map(to_json, parts)]
    return _UNKNOWN


def from_json(data: Any) -> SizeExpr:
    """The inverse of ``to_json``; a ValueError says what is wrong with other data."""
    match data:
        case bool():
            return Truth(data)
        case int():
            return Number(data)
        case float() if math.isfinite(data):
            return Number(data)
        case str() if data == _UNKNOWN:
            return Unknown()
        case str() if data.isidentifier():
            return Name(data)
        case [str(name), _, *_] if name in OPERATORS or name.isidentifier():
            return _operation(name, [from_json(item) for item in data[1:]])
    raise ValueError(
        f'expected a size, such as 3, "seq" or ["+", ["*", 2, "half"], 1], got {data!r}'
    )


def _operation(name: str, operands: list[SizeExpr]) -> SizeExpr:
    count = len(operands)
    if name in _ASSOCIATIVE and count > 2:
        return operation(name, _operation(name, operands[:-1]), operands[-1])
    if name == "not" or name in FUNCTIONS:
        fits = count == 1
    elif name == "**":
        fits = count == 2 and operands[1] in _EXPONENTS
    elif name in ARITHMETIC:
        fits = count == 2 or (count == 1 and name == "-")
    else:
        fits = count >= 2 or name not in OPERATORS
    if not fits:
        raise ValueError(f'"{name}" can\'t have the operands {", ".join(map(str, operands))}')
    return operation(name, *operands)
