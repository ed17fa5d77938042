"""The assumptions of an exported program about the sizes of a call, as conditions on its dims.

torch writes the results of tracing as Python text about the arguments (``L['x'].size()[0] % 100 ==
0``). Only ``ep.module()`` evaluates it; compiled code does not.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.conditions import Ranges
from aoti_driver.contract.size_expr import (
    Operation,
    SizeExpr,
    UnsupportedError,
    python_text,
)
from aoti_driver.export import python_sizes
from aoti_driver.export.guard_proofs import proved, refuted
from aoti_driver.export.torch_sizes import condition_from_sympy, symbol
from aoti_driver.torch_internals import patching


def of_program(
    ep: ExportedProgram,
    module: Callable[[], GraphModule],
    expressions: Mapping[sympy.Symbol, sympy.Expr],
    ranges: Ranges,
    label: str,
) -> tuple[SizeExpr, ...]:
    """The program's guards as conditions, without those that hold for all sizes in the ranges.

    module: makes what runs the program; it is called if there are guards. expressions: torch's
    symbols in terms of the dims.
    """
    found: dict[SizeExpr, None] = {}
    sources: dict[str, SizeExpr] | None = None
    for guard in getattr(ep, "_guards_code", ()):
        if sources is None:
            sources = _sources(ep, module(), expressions, label)
        for condition in _parts(_in_dims(guard, sources, label)):
            if not proved(condition, ranges):
                found[condition] = None
    for condition in found:
        if refuted(condition, ranges):
            raise DriverError(
                f"{label}: the program was exported under the condition "
                f'"{python_text(condition)}", which no size that is declared meets '
                f"({_ranges_text(condition, ranges)}). Declare other ranges."
            )
    return tuple(found)


def without_small_ends(ranges: Ranges) -> dict[str, tuple[int, int]]:
    """The ranges without 0 and 1, which torch leaves out where it can, and which are tested later.
    A range with negative numbers, which no size has, keeps them.
    """
    return {
        name: (low, high) if low < 0 else (max(low, 2), max(high, 2))
        for name, (low, high) in ranges.items()
    }


def inequalities(guards: Sequence[SizeExpr]) -> list[SizeExpr]:
    """For each ``a != b`` among the guards, the equation ``a == b`` that it excludes."""
    return [
        Operation("==", guard.operands)
        for guard in guards
        if isinstance(guard, Operation) and guard.operator == "!="
    ]


def without_inequalities(guards: Sequence[SizeExpr]) -> list[SizeExpr]:
    return [guard for guard in guards if not inequalities([guard])]


def _ranges_text(condition: SizeExpr, ranges: Ranges) -> str:
    return ", ".join(
        f"{name} in {ranges[name][0]}..{ranges[name][1]}"
        for name in condition.dims
        if name in ranges
    )


def _in_dims(guard: str, sources: Mapping[str, SizeExpr], label: str) -> SizeExpr:
    try:
        return python_sizes.parse(guard, sources)
    except UnsupportedError as e:
        raise DriverError(
            f'{label}: the program was exported under the guard "{" ".join(guard.split())}", which '
            f'a compiled model can\'t check at run time, because of "{e}". Without it the model '
            "could return wrong results. Export the program with dims that don't need this guard "
            "(torch.export.Dim with a range, in place of Dim.AUTO or Dim.DYNAMIC), or change the "
            "line of the model that asks for it."
        ) from None


def _parts(condition: SizeExpr) -> list[SizeExpr]:
    """The parts of a conjunction, each of which gets an error message of its own."""
    if isinstance(condition, Operation) and condition.operator == "and":
        return [part for operand in condition.operands for part in _parts(operand)]
    return [condition]


def _sources(
    ep: ExportedProgram,
    module: GraphModule,
    expressions: Mapping[sympy.Symbol, sympy.Expr],
    label: str,
) -> dict[str, SizeExpr]:
    """Maps the texts by which guards refer to sizes of arguments to expressions of the dims.

    The compiled program gets tensors that begin where their memory begins, with the strides that
    the program was exported for (other tensors are copied first).
    """
    values = {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}
    user = [s for s in ep.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    sources: dict[str, SizeExpr] = {}

    def add(text: str, size: Any) -> None:
        expression = size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)
        if not expression.free_symbols <= set(expressions):
            return  # a guard that refers to it is refused
        sources[python_sizes.normal(text)] = condition_from_sympy(
            expression.subs(dict(expressions))
        )

    every = _paths(ep, module, len(user))
    for position, (spec, paths) in enumerate(zip(user, every, strict=True)):
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


def _paths(ep: ExportedProgram, module: GraphModule, count: int) -> list[list[str]]:
    """For each leaf of the arguments, the texts by which guards may refer to it."""
    spec: Any = ep.call_spec.in_spec
    args, kwargs = pytree.tree_unflatten(list(range(count)), spec)
    signature = inspect.signature(module.forward)
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
    """Keeps torch.export from refusing a model because of guards that hold for all declared sizes.

    torch gives up if it can't prove such a guard itself, for example
    ``past*min(8, 8 + 8*past) + min(8, 8 + 8*past) == 8 + 8*past``.
    """
    place = "torch.fx.experimental.symbolic_shapes:ShapeEnv.produce_guards_verbose"
    produce = patching.original(place)

    def produce_unproved(env: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("guards") is None:
            kwargs["guards"] = [guard for guard in env.guards if not _proved_in(env, guard.expr)]
        return produce(env, *args, **kwargs)

    with patching.replaced({place: produce_unproved}):
        yield


def _proved_in(env: Any, expression: Any) -> bool:
    ranges = {}
    renamed = {}
    for i, given in enumerate(sorted(expression.free_symbols, key=str)):
        known = env.var_to_range.get(given)
        if known is None or not known.lower.is_Integer or not known.upper.is_Integer:
            return False
        name = f"s{i}"
        renamed[given] = symbol(name)
        ranges[name] = (int(known.lower), int(known.upper))
    if not ranges:
        return False
    try:
        condition = condition_from_sympy(expression.xreplace(renamed))
    except (UnsupportedError, NotImplementedError):
        return False
    return proved(condition, ranges)
