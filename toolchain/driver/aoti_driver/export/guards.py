"""What an exported program assumes about the sizes of a call, as conditions on its dims.

torch writes what tracing found as Python text over the arguments (``L['x'].size()[0] % 100 == 0``),
which only ``ep.module()`` evaluates: compiled code does not.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from aoti_driver.base.errors import DriverError
from aoti_driver.base.patching import replaced
from aoti_driver.contract import conditions
from aoti_driver.contract.conditions import Ranges, UnsupportedError

_TRIED = 20_000
_Max: Any = Max
_Min: Any = Min


def of_program(
    ep: ExportedProgram,
    expressions: Mapping[sympy.Symbol, sympy.Expr],
    ranges: Ranges,
    label: str,
) -> tuple[str, ...]:
    """The conditions that its guards are, but for those that hold for all sizes in the ranges.

    expressions: torch's symbols in terms of the dims.
    """
    found: dict[str, None] = {}
    sources: dict[str, ast.expr] | None = None
    for guard in getattr(ep, "_guards_code", ()):
        if sources is None:
            sources = _sources(ep, expressions, label)
        for text in _parts(_in_dims(guard, sources, label)):
            if not proved(text, ranges):
                found[text] = None
    for text in found:
        if refuted(text, ranges):
            raise DriverError(
                f'{label}: the program was exported under the condition "{text}", which no size '
                f"that is declared meets ({_ranges_text(text, ranges)}). Declare other ranges."
            )
    return tuple(found)


def inequalities(guards: Sequence[str]) -> list[str]:
    """For each ``a != b`` among the guards, the equation ``a == b`` that it excludes."""
    found = []
    for text in guards:
        tree = _tree(text)
        if isinstance(tree, ast.Compare) and isinstance(tree.ops[0], ast.NotEq):
            tree.ops = [ast.Eq()]
            found.append(ast.unparse(tree))
    return found


def without_inequalities(guards: Sequence[str]) -> list[str]:
    return [text for text in guards if not inequalities([text])]


def text_of(expression: sympy.Expr) -> str:
    """An expression of dims as a condition may have it."""
    return ast.unparse(ast.parse(PythonPrinter().doprint(expression), mode="eval"))


def _ranges_text(text: str, ranges: Ranges) -> str:
    return ", ".join(
        f"{name} in {ranges[name][0]}..{ranges[name][1]}"
        for name in conditions.mentioned(text)
        if name in ranges
    )


def _in_dims(guard: str, sources: Mapping[str, ast.expr], label: str) -> ast.expr:
    try:
        tree = _Substitution(sources).visit(ast.parse(guard.strip(), mode="eval").body)
        conditions.check(tree)
    except (SyntaxError, UnsupportedError) as e:
        raise DriverError(
            f'{label}: the program was exported under the guard "{" ".join(guard.split())}", which '
            f'a compiled model can\'t check at run time, because of "{e}". Without it the model '
            "could return wrong results. Export the program with dims that don't need this guard "
            "(torch.export.Dim with a range, in place of Dim.AUTO or Dim.DYNAMIC), or change the "
            "line of the model that asks for it."
        ) from None
    result: ast.expr = tree
    return result


def _parts(tree: ast.expr) -> list[str]:
    """A conjunction's parts, each of which has an error message of its own."""
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return [text for value in tree.values for text in _parts(value)]
    return [ast.unparse(tree)]


class _Substitution(ast.NodeTransformer):
    def __init__(self, sources: Mapping[str, ast.expr]) -> None:
        self._sources = sources

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Subscript, ast.Call)):
            text = ast.unparse(node)
            if text in self._sources:
                return self._sources[text]
            if "L[" in text and not isinstance(node, ast.Call):
                raise UnsupportedError(text)
        return self.generic_visit(node)


def _sources(
    ep: ExportedProgram, expressions: Mapping[sympy.Symbol, sympy.Expr], label: str
) -> dict[str, ast.expr]:
    """What guards call the sizes of arguments, and what these are in the dims.

    The compiled program gets tensors that begin where their memory does, with the strides that the
    program was exported for (others are copied first).
    """
    values = {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}
    user = [s for s in ep.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    sources: dict[str, ast.expr] = {}

    def add(text: str, size: Any) -> None:
        expression = size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)
        if not expression.free_symbols <= set(expressions):
            return  # a guard about it is refused by its name
        known = text_of(expression.subs(dict(expressions)))
        key = ast.unparse(ast.parse(text, mode="eval"))
        sources[key] = ast.parse(known, mode="eval").body

    for position, (spec, paths) in enumerate(zip(user, _paths(ep, len(user)), strict=True)):
        value: Any = values.get(getattr(spec.arg, "name", ""))
        for path in [f"L['flat_args'][{position}]", *paths]:
            if isinstance(spec.arg, TensorArgument):
                for i, (size, stride) in enumerate(zip(value.shape, value.stride(), strict=True)):
                    add(f"{path}.size()[{i}]", size)
                    add(f"{path}.stride()[{i}]", stride)
                add(f"{path}.storage_offset()", 0)
            elif isinstance(value, (int, float, torch.SymInt)):
                add(path, value)
            elif isinstance(getattr(spec.arg, "value", None), (int, float)):
                add(path, spec.arg.value)
    return sources


def _paths(ep: ExportedProgram, count: int) -> list[list[str]]:
    """For each leaf of the arguments, the texts by which guards may call it."""
    spec: Any = ep.call_spec.in_spec
    args, kwargs = pytree.tree_unflatten(list(range(count)), spec)
    signature = inspect.signature(ep.module(check_guards=False).forward)
    bound = signature.bind(*args, **kwargs).arguments
    parameters = signature.parameters
    result: list[list[str]] = [[] for _ in range(count)]
    for keys, leaf in pytree.tree_flatten_with_path(bound)[0]:
        result[leaf].append(f"L{pytree.keystr(keys)}")
        name, _, index = str(keys[0].key).rpartition("_")  # type: ignore[attr-defined]
        if index.isdigit():  # "args_0" of *args
            result[leaf].append(f"L['{name}'][{index}]{pytree.keystr(keys[1:])}")
        if parameters[str(keys[0].key)].kind is inspect.Parameter.VAR_KEYWORD:  # type: ignore[attr-defined]
            result[leaf].append(f"L{pytree.keystr(keys[1:])}")
    return result


@contextlib.contextmanager
def proved_ones_dropped() -> Iterator[None]:
    """Keeps torch.export from refusing a model for guards that hold for all declared sizes.

    torch gives up where it can't see that by itself, as for
    ``past*min(8, 8 + 8*past) + min(8, 8 + 8*past) == 8 + 8*past``.
    """
    produce = ShapeEnv.produce_guards_verbose

    def produce_unproved(env: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("guards") is None:
            kwargs["guards"] = [guard for guard in env.guards if not _proved_in(env, guard.expr)]
        return produce(env, *args, **kwargs)

    with replaced(ShapeEnv, "produce_guards_verbose", produce_unproved):
        yield


def _proved_in(env: Any, expression: Any) -> bool:
    ranges = {}
    renamed = {}
    for i, symbol in enumerate(sorted(expression.free_symbols, key=str)):
        known = env.var_to_range.get(symbol)
        if known is None or not known.lower.is_Integer or not known.upper.is_Integer:
            return False
        name = f"s{i}"
        renamed[symbol] = sympy.Symbol(name, integer=True)
        ranges[name] = (int(known.lower), int(known.upper))
    if not ranges:
        return False
    try:
        text = text_of(expression.xreplace(renamed))
        conditions.parse(text)
    except (UnsupportedError, SyntaxError, NotImplementedError):
        return False
    return proved(text, ranges)


# --- proofs ---------------------------------------------------------------------------------------


def proved(text: str, ranges: Ranges) -> bool:
    """Whether a condition holds for all sizes in the ranges; False where that isn't known."""
    tried = _by_trying(text, ranges)
    return tried if tried is not None else _truth(_tree(text), ranges) is True


def refuted(text: str, ranges: Ranges) -> bool:
    """Whether a condition holds for no sizes in the ranges; False where that isn't known."""
    names = conditions.mentioned(text)
    if _few(names, ranges):
        values = [range(ranges[n][0], ranges[n][1] + 1) for n in names]
        return not any(
            conditions.holds(text, dict(zip(names, v))) for v in itertools.product(*values)
        )
    return _truth(_tree(text), ranges) is False


def _tree(text: str) -> ast.expr:
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
    """With numbers for functions that are the same everywhere, such as ``min(8, 8 + 8*past)``."""
    constants = {}
    for function in expression.atoms(sympy.Function, Max, Min):
        low, high = _bounds(function, ranges)
        if low == high:
            constants[function] = low
    return sympy.expand(expression.subs(constants)) if constants else expression


def _compare_zero(operator: ast.cmpop, difference: sympy.Expr, ranges: Ranges) -> bool | None:
    """Whether ``difference`` stands in this relation to 0, for all sizes in the ranges."""
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
    """``2*a - 4*b + 1`` is never 0: all coefficients are even, and 1 is not."""
    constant, terms = difference.as_coeff_add()
    factors = [term.as_coeff_Mul()[0] for term in terms]
    if not constant.is_Integer or not factors or not all(f.is_Integer for f in factors):
        return False
    return bool(int(constant) % math.gcd(*(int(f) for f in factors)))


def _bounds(expression: sympy.Expr, ranges: Ranges) -> tuple[Any, Any]:
    """The least and the greatest value, or what is known to be below and above them."""
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
    except Exception:  # torch's analysis refuses some functions, by many kinds of errors
        low, high = -sympy.oo, sympy.oo
    # What is no polynomial counts as a variable of its own.
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
        # Every variable is an end of its range and a way from there, which is not negative.
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
