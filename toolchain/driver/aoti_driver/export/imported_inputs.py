"""The inputs of an imported program: their dims, and conditions on sizes, declared or found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import naming
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.polynomials import computed
from aoti_driver.contract.program_parts import Input, NumberType
from aoti_driver.contract.size_expr import Name, Number, SizeExpr, affine, operation
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export import describe
from aoti_driver.export.describe import Symbols
from aoti_driver.export.torch_sizes import condition_from_sympy, expression_of, symbol, to_sympy
from aoti_driver.program import signature

_LARGEST = 2**31 - 1
_LARGEST_VALUE = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class Taken:
    """The inputs of the program. ``guards``: conditions for sizes that are not linear functions of
    one dim.
    """

    inputs: list[Input]
    symbols: Symbols
    dims: Dims
    guards: list[SizeExpr]


def _arguments(ep: ExportedProgram, label: str) -> list[tuple[str, str, Any]]:
    """(name, dtype, fake tensor or symbolic integer) of each input; names are forward()'s."""
    values = signature.placeholders(ep)
    names = signature.tensor_inputs(ep)
    found = []
    for name, placeholder in zip(naming.input_names([[n] for n in names]), names):
        value = values[placeholder]
        number = not isinstance(value, torch.Tensor)
        dtype = "int64" if number else str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise DriverError(f'{label}: input "{name}" is {dtype}, which is not supported')
        found.append((name, dtype, value))
    return found


def _shape(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def declared_inputs(
    ep: ExportedProgram, patterns: Mapping[str, TensorSpec], declared: Dims, label: str
) -> Taken:
    """Dims as the rule names them; they must match those that the program was exported with."""
    inputs = []
    arguments = _arguments(ep, label)
    names = [name for name, _, _ in arguments]
    for name in patterns:
        if name not in names:
            raise DriverError(
                f'{label}: inputs: the program has no input "{name}"{did_you_mean(name, names)}. '
                f"Its inputs: {listed(names)}."
            )
    ranges = dict(declared.ranges)
    expressions: dict[sympy.Symbol, sympy.Expr] = {}
    sizes: list[tuple[str, SizeExpr, sympy.Expr]] = []
    for name, dtype, value in arguments:
        where = f'{label}: inputs["{name}"]'
        spec = patterns.get(name)
        if spec is None:
            raise DriverError(f"{where}: missing; the program takes {_text(dtype, value)}")
        is_tensor = isinstance(value, torch.Tensor)
        if (
            spec.dtype != dtype
            or len(spec.shape) != len(_shape(value))
            or (is_tensor and spec.number is not None)
        ):
            raise DriverError(f"{where}: the program takes {_text(dtype, value)}")
        for i, (size, given) in enumerate(zip(spec.shape, _shape(value))):
            exported = expression_of(given)
            if computed(size):
                raise DriverError(
                    f"{where}: dim {i} is {size}: a size of an imported program can have only one "
                    "dim, without a division. Give it a dim of its own in dynamic_dims; where the "
                    "program relates it to others, every call is checked for that."
                )
            if not size.dims and exported != to_sympy(size):
                raise DriverError(f"{where}: dim {i} is {size}, the program takes {exported}")
            if size.dims and not exported.free_symbols:
                raise DriverError(describe.specialised(label, name, i, size, int(exported)))
            sizes.append((f"{where}: dim {i}", size, exported))
        if is_tensor:
            inputs.append(Input(name, name, dtype, spec.shape, stride=(), values=spec.values))
            continue
        dim = _free_name(name, declared.order)
        expression = expression_of(value)
        ranges[dim] = _value_range(ep, expression, spec, where)
        expressions[expression] = symbol(dim)
        inputs.append(Input(name, name, dtype, (), stride=(), value=dim, number="int"))
    for _, size, exported in sizes:
        _solve(exported, size, expressions)
    conditions = []
    for where, size, exported in sizes:
        if condition := _size_condition(exported, size, expressions, where):
            conditions.append(condition)
    order = (*declared.order, *(name for name in ranges if name not in declared.order))
    used = dataclasses.replace(declared, ranges=ranges, order=order)
    symbols = Symbols(expressions)
    describe.check_ranges(ep, symbols, used, label)
    return Taken(inputs, symbols, used, conditions)


def _free_name(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_value"
    return name


def _value_range(
    ep: ExportedProgram, expression: sympy.Expr, spec: TensorSpec, where: str
) -> tuple[int, int]:
    low, high = _range(ep, expression, least=-_LARGEST_VALUE, most=_LARGEST_VALUE)
    if spec.values is None:
        return low, high
    first, last = (int(v) for v in spec.values)
    if first < low or last > high:
        raise DriverError(
            f"{where}: the values {first}..{last} are declared, but the program takes only "
            f'{low}..{high}. Write "int64[] in {max(first, low)}..{min(last, high)}".'
        )
    return first, last


def _solve(
    exported: sympy.Expr, size: SizeExpr, expressions: dict[sympy.Symbol, sympy.Expr]
) -> None:
    """Learns the value of a symbol in terms of the dims, from a size that depends on nothing
    else.
    """
    if not size.dims or len(exported.free_symbols) != 1:
        return
    known = next(iter(exported.free_symbols))
    if known not in expressions and sympy.Poly(exported, known).degree() == 1:
        (solution,) = sympy.solve(exported - to_sympy(size), known)
        expressions[known] = sympy.expand(solution)


def _size_condition(
    exported: sympy.Expr,
    size: SizeExpr,
    expressions: Mapping[sympy.Symbol, sympy.Expr],
    where: str,
) -> SizeExpr | None:
    """The condition under which a size is the one that the program takes; None if it always is."""
    if not size.dims:
        return None
    if not exported.free_symbols <= set(expressions):
        raise DriverError(
            f"{where}: the program takes the size {exported}, and no input gives "
            f"{listed(sorted(map(str, exported.free_symbols - set(expressions))))} alone"
        )
    declared = to_sympy(size)
    wanted = sympy.expand(exported.subs(dict(expressions)))
    if sympy.expand(wanted - declared) == 0:
        return None
    if len(wanted.free_symbols) <= 1:
        raise DriverError(
            f"{where} is {size}, but the program takes {wanted} there: sizes that are always "
            f"the same function of one dim. Write {wanted} in its place."
        )
    return operation("==", condition_from_sympy(declared), condition_from_sympy(wanted))


def found_inputs(ep: ExportedProgram, label: str) -> Taken:
    """Dims as the program has them, named s0, s1, ... in the order in which inputs use them."""
    expressions: dict[sympy.Symbol, sympy.Expr] = {}
    ranges: dict[str, tuple[int, int]] = {}
    arguments = _arguments(ep, label)

    def new_dim(low: int, high: int) -> str:
        name = f"s{len(ranges)}"
        ranges[name] = (low, high)
        return name

    values: dict[str, str] = {}
    for name, _, value in arguments:
        for size in _shape(value):
            expression = expression_of(size)
            if _is_linear(expression) and not expression.free_symbols <= set(expressions):
                (root,) = expression.free_symbols
                expressions[root] = symbol(new_dim(*_root_range(ep, expression, root)))
        if not isinstance(value, torch.Tensor):
            number = expression_of(value)
            if number not in expressions:
                bounds = _range(ep, number, least=-_LARGEST_VALUE, most=_LARGEST_VALUE)
                expressions[number] = symbol(new_dim(*bounds))
            values[name] = str(expressions[number])
    inputs = []
    conditions = []
    for name, dtype, value in arguments:
        shape = []
        for size in _shape(value):
            expression = expression_of(size)
            if not expression.free_symbols or _is_linear(expression):
                shape.append(_linear_size(expression, expressions))
                continue
            if not expression.free_symbols <= set(expressions):
                raise DriverError(
                    f'{label}: input "{name}" has the size {expression}, and no input gives the '
                    f"sizes {listed(sorted(map(str, expression.free_symbols)))} by themselves"
                )
            dim = new_dim(*_range(ep, expression))
            known = expression.subs(expressions)
            conditions.append(operation("==", Name(dim), condition_from_sympy(known)))
            shape.append(Name(dim))
        kind: NumberType | None = "int" if name in values else None
        inputs.append(
            Input(name, name, dtype, tuple(shape), (), value=values.get(name), number=kind)
        )
    return Taken(inputs, Symbols(expressions), Dims(ranges, {}, {}, tuple(ranges)), conditions)


def _range(
    ep: ExportedProgram, expression: sympy.Expr, least: int = 0, most: int = _LARGEST
) -> tuple[int, int]:
    known = ep.range_constraints.get(expression)
    if known is None:
        return max(2, least), most
    low = int(known.lower) if known.lower.is_Integer else least
    high = int(known.upper) if known.upper.is_Integer else most
    return max(low, least), min(high, most)


def _root_range(
    ep: ExportedProgram, expression: sympy.Expr, symbol: sympy.Symbol
) -> tuple[int, int]:
    """The range of a symbol of which a size is a linear function."""
    known = ep.range_constraints
    if symbol in known or expression not in known:
        return _range(ep, symbol)
    scale, offset = (int(c) for c in sympy.Poly(expression, symbol).all_coeffs())
    low, high = _range(ep, expression)
    return max(0, -((offset - low) // scale)), (high - offset) // scale


def _is_linear(expression: sympy.Expr) -> bool:
    symbols = list(expression.free_symbols)
    if len(symbols) != 1 or not expression.is_polynomial(*symbols):
        return False
    polynomial = sympy.Poly(expression, symbols[0])
    return bool(
        polynomial.degree() == 1
        and all(c.is_Integer for c in polynomial.all_coeffs())
        and polynomial.all_coeffs()[0] > 0
    )


def _linear_size(expression: sympy.Expr, names: Mapping[sympy.Symbol, sympy.Expr]) -> SizeExpr:
    symbols = list(expression.free_symbols)
    if not symbols:
        return Number(int(expression))
    scale, offset = (int(c) for c in sympy.Poly(expression, symbols[0]).all_coeffs())
    return affine(scale, str(names[symbols[0]]), offset)


def _text(dtype: str, value: Any) -> str:
    return f"{dtype}[{', '.join(str(expression_of(s)) for s in _shape(value))}]"
