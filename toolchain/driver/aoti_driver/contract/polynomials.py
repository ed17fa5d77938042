"""Sizes and strides: polynomials in dims, read from the manifest's text, printed for C++."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from aoti_driver.base.errors import DriverError

# Sorted names of dims, repeated by their power -> coefficient. {} is 0, {(): 3} is 3.
Polynomial = dict[tuple[str, ...], int]


def constant(value: int) -> Polynomial:
    return {(): value} if value else {}


def add(a: Polynomial, b: Polynomial) -> Polynomial:
    result = dict(a)
    for term, factor in b.items():
        result[term] = result.get(term, 0) + factor
    return {term: factor for term, factor in result.items() if factor}


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for term_a, factor_a in a.items():
        for term_b, factor_b in b.items():
            term = tuple(sorted(term_a + term_b))
            result[term] = result.get(term, 0) + factor_a * factor_b
    return {term: factor for term, factor in result.items() if factor}


def parse(text: str, dims: Mapping[str, Polynomial], what: str) -> Polynomial:
    """Reads an expression such as ``64*seq`` or ``seq*(half + 1)``.

    ``Max(1, x)`` is read as ``x``: torch prints it where a size might be 0, and the strides of a
    tensor without elements don't matter. ``dims``: what each dim stands for.
    """

    def visit(node: ast.expr) -> Polynomial:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return constant(value)
            case ast.Name(id=name) if name in dims:
                return dims[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return multiply(constant(-1), visit(operand))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return add(visit(left), visit(right))
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return add(visit(left), multiply(constant(-1), visit(right)))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return multiply(visit(left), visit(right))
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))) if (
                0 <= power <= 16
            ):
                result = constant(1)
                for _ in range(power):
                    result = multiply(result, visit(base))
                return result
            case ast.Call(func=ast.Name(id="Max"), args=[a, b], keywords=[]):
                one = constant(1)
                first, second = visit(a), visit(b)
                if first == one:
                    return second
                if second == one:
                    return first
        raise DriverError(
            f'{what}: can\'t use "{ast.unparse(node)}" in "{text}": expected integers and dims '
            f"({', '.join(dims) or 'there are none'}) with +, - and *"
        )

    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as e:
        raise DriverError(f'{what}: "{text}" is not an expression') from e
    return visit(tree.body)


def to_cpp(polynomial: Polynomial, variables: Mapping[str, str]) -> str:
    """A C++ expression of type std::int64_t; ``variables``: the C++ expression of each dim."""
    terms = []
    for term, factor in sorted(polynomial.items(), key=lambda item: (-len(item[0]), item[0])):
        parts = [variables[name] for name in term]
        if factor != 1 or not parts:
            parts.insert(0, str(factor))
        terms.append(" * ".join(parts))
    return " + ".join(terms) if terms else "0"


def contiguous_strides(sizes: Sequence[Polynomial]) -> list[Polynomial]:
    """The strides of a row-major tensor."""
    strides = [constant(1)]
    for size in reversed(sizes[1:]):
        strides.insert(0, multiply(size, strides[0]))
    return strides[: len(sizes)]
