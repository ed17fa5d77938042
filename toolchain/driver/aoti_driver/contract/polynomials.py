"""The normal form of sizes: polynomials in dims; most are linear in one dim."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import size_expr
from aoti_driver.contract.size_expr import Name, Number, Operation, SizeExpr

# Sorted names of dims, repeated by their power -> coefficient. {} is 0, {(): 3} is 3. A division
# counts as a dim, whose name is a Quotient.
Polynomial = dict[tuple[str, ...], int]


class Quotient(str):
    """The name that a division has among the dims of a polynomial."""

    size: SizeExpr


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
            case Operation("//", (left, Number(int(divisor)))) if divisor > 0:
                return divide(visit(left), divisor)
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
            "with +, -, * and // by a positive integer"
        )

    return visit(size)


def divide(terms: Polynomial, divisor: int) -> Polynomial:
    """The quotient by a positive integer, rounded down: what it divides stands outside of it."""
    whole = {term: scale // divisor for term, scale in terms.items() if scale % divisor == 0}
    rest = {term: scale for term, scale in terms.items() if scale % divisor}
    if not any(rest):
        return add(whole, constant(rest.get((), 0) // divisor))
    if any(len(term) > 1 for term in rest):
        raise DriverError("a product of dims can't be divided")
    size = Operation("//", (linear(rest), Number(divisor)))
    quotient = Quotient(size)
    quotient.size = size
    return add(whole, {(quotient,): 1})


def computed(size: SizeExpr) -> bool:
    """Whether the size of an input follows from dims that other sizes give: a sum or a quotient."""
    return len(size.dims) > 1 or bool(quotients(size))


def quotients(size: SizeExpr) -> list[Operation]:
    """The divisions in a size."""
    match size:
        case Operation(operator, operands):
            inner = [quotient for operand in operands for quotient in quotients(operand)]
            return [size, *inner] if operator == "//" else inner
    return []


def affine(size: SizeExpr, dims: Mapping[str, Polynomial] | None = None) -> Affine:
    """A size that is linear in at most one dim; raises DriverError for other sizes."""
    terms = polynomial(size, dims)
    linear = [term for term in terms if term]
    names = [name for term in linear for name in term]
    if len(names) > 1 or any(isinstance(name, Quotient) for name in names):
        raise DriverError(f'the size "{size}" is not an integer times one dim plus an integer')
    offset = terms.get((), 0)
    return Affine(terms[linear[0]], linear[0][0], offset) if linear else Affine(0, None, offset)


def linear(terms: Polynomial) -> SizeExpr:
    """The size of a polynomial without products of dims, with its terms in their order."""
    parts = [_multiple(scale, term[0]) for term, scale in terms.items() if term]
    offset = terms.get((), 0)
    if not parts:
        return Number(offset)
    result = functools.reduce(lambda left, right: Operation("+", (left, right)), parts)
    if offset == 0:
        return result
    return Operation("+" if offset > 0 else "-", (result, Number(abs(offset))))


def _multiple(scale: int, name: str) -> SizeExpr:
    if not isinstance(name, Quotient):
        return size_expr.affine(scale, name, 0)
    return name.size if scale == 1 else Operation("*", (Number(scale), name.size))


def contiguous_strides(sizes: Sequence[Polynomial]) -> list[Polynomial]:
    """The strides of a row-major tensor."""
    strides = [constant(1)]
    for size in reversed(sizes[1:]):
        strides.insert(0, multiply(size, strides[0]))
    return strides[: len(sizes)]
