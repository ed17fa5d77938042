"""The normal form of sizes: polynomials in dims; most are linear in one dim."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import size_expr
from aoti_driver.contract.size_expr import Name, Number, Operation, SizeExpr

# Sorted names of dims, repeated by their power -> coefficient. {} is 0, {(): 3} is 3.
Polynomial = dict[tuple[str, ...], int]


class Affine(NamedTuple):
    """``scale * dim + offset``; ``dim`` is None and ``scale`` 0 for a static size."""

    scale: int
    dim: str | None
    offset: int


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


def polynomial(size: SizeExpr, dims: Mapping[str, Polynomial] | None = None) -> Polynomial:
    """The normal form of a size; raises DriverError for one that is not a polynomial.

    ``max(1, x)`` counts as ``x``: torch writes it if a size might be 0, and the strides of a tensor
    without elements don't matter. ``dims``: the polynomial of each dim; if given, other dims are
    refused.
    """

    def visit(part: SizeExpr) -> Polynomial:
        match part:
            case Number(int(value)):
                return constant(value)
            case Name(name) if dims is None or name in dims:
                return {(name,): 1} if dims is None else dims[name]
            case Operation("+", (left, right)):
                return add(visit(left), visit(right))
            case Operation("-", (left, right)):
                return add(visit(left), multiply(constant(-1), visit(right)))
            case Operation("-", (operand,)):
                return multiply(constant(-1), visit(operand))
            case Operation("*", (left, right)):
                return multiply(visit(left), visit(right))
            case Operation("**", (base, Number(int(power)))):
                result = constant(1)
                for _ in range(power):
                    result = multiply(result, visit(base))
                return result
            case Operation("max", (left, right)):
                first, second = visit(left), visit(right)
                if first == constant(1):
                    return second
                if second == constant(1):
                    return first
        allowed = f" ({', '.join(dims) or 'there are none'})" if dims is not None else ""
        raise DriverError(
            f'can\'t use "{part}" in the size "{size}": expected integers and dims{allowed} '
            "with +, - and *"
        )

    return visit(size)


def affine(size: SizeExpr, dims: Mapping[str, Polynomial] | None = None) -> Affine:
    """A size that is linear in at most one dim; raises DriverError for other sizes."""
    terms = polynomial(size, dims)
    linear = [term for term in terms if term]
    if len(linear) > 1 or any(len(term) > 1 for term in linear):
        raise DriverError(f'the size "{size}" is not an integer times one dim plus an integer')
    offset = terms.get((), 0)
    return Affine(terms[linear[0]], linear[0][0], offset) if linear else Affine(0, None, offset)


def linear(terms: Polynomial) -> SizeExpr:
    """The size of a polynomial without products of dims, with its terms in their order."""
    parts = [size_expr.affine(scale, term[0], 0) for term, scale in terms.items() if term]
    offset = terms.get((), 0)
    if not parts:
        return Number(offset)
    result = functools.reduce(lambda left, right: Operation("+", (left, right)), parts)
    if offset == 0:
        return result
    return Operation("+" if offset > 0 else "-", (result, Number(abs(offset))))


def contiguous_strides(sizes: Sequence[Polynomial]) -> list[Polynomial]:
    """The strides of a row-major tensor."""
    strides = [constant(1)]
    for size in reversed(sizes[1:]):
        strides.insert(0, multiply(size, strides[0]))
    return strides[: len(sizes)]
