"""Whether the variants of a function take every call that is declared, and each one some call.

Conditions on several dims are tried at some sizes alone: a call that is found is one that no
variant takes, but not all such calls are found.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings.declared_calls import Call, Number, Passed, calls, sizes_of
from aoti_driver.bindings.functions import Function
from aoti_driver.bindings.model import Method, Space
from aoti_driver.contract import conditions, polynomials
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.size_expr import SizeExpr, python_text


def check(label: str, function: Function, spaces: Mapping[str, Space]) -> None:
    """Raises DriverError with a call that no variant takes, or a variant that takes none."""
    space = spaces.get(function.name)
    if space is None or "auto" in space.dynamic_dims.values():
        return
    variants = function.methods
    if any("auto" in spaces[f"{m.name}.{m.variant}"].dynamic_dims.values() for m in variants):
        return
    where = label if function.single else f"{label}: {function.name}"
    never: dict[str, Call | None] = {method.variant: None for method in variants}
    sizes = sizes_of(where, space, [spaces[f"{m.name}.{m.variant}"] for m in variants], variants)
    for call in calls(where, space, sizes):
        programs = [method.model.program for method in variants]
        common = _common_guards([p for p in programs if _wrong_kind(p, call) is None])
        taker = None
        for method in variants:
            if _takes(method, call, common):
                taker = method.variant
                break
        if taker is None:
            reasons = "".join(
                f"\n  not {m.variant}: {refusal(m.model.program, call, common)}" for m in variants
            )
            raise DriverError(
                f"{where}: no variant takes a call with {_text(call)}, which `inputs` and "
                f"`dynamic_dims` allow:{reasons}\n  Add a variant for such calls, or leave them "
                "out of `inputs` or `dynamic_dims`."
            )
        never.pop(taker, None)
        for method in variants:
            if never.get(method.variant, call) is None and _takes(method, call, common):
                never[method.variant] = call
    if any(len(guard.dims) > 1 for m in variants for guard in m.model.program.guards):
        return  # some other call may run it
    for name, taken in never.items():
        why = (
            f"earlier variants take all of its calls, such as {_text(taken)}. Put it before them"
            if taken is not None
            else "it takes no call that `inputs` and `dynamic_dims` allow. Correct it"
        )
        raise DriverError(f'{where}: variants["{name}"] never runs: {why}, or remove it.')


def _takes(method: Method, call: Call, given: Iterable[str]) -> bool:
    return refusal(method.model.program, call, given) is None


def refusal(program: ProgramManifest, call: Call, given: Iterable[str] = ()) -> str | None:
    """The first condition of a program that a call does not meet; None if it meets all.

    given: conditions that hold, as Python writes them.
    """
    if (reason := _wrong_kind(program, call)) is not None:
        return reason
    values: dict[str, int] = {}
    ranges = {dim.name: (dim.min, dim.max) for dim in program.dims if dim.alias is None}
    pending: list[tuple[str, SizeExpr, int]] = []
    for item in program.inputs:
        passed = call.get(item.path)
        if passed is None:
            continue
        if item.number is not None:
            number = _as_number(passed)
            assert number is not None
            low, high = -math.inf, math.inf
            if item.values is not None:
                low, high = item.values
            elif item.value in ranges:
                low, high = ranges[item.value]
            if not low <= number <= high:
                return f"{item.path} must be in {low}..{high}"
            if item.value is not None:
                values[item.value] = int(number)
            continue
        pending += [(item.path, size, n) for size, n in zip(item.shape, passed.sizes)]
    for path, size, given_size in pending:
        if not size.dims or polynomials.computed(size):
            continue
        scale, _, offset = polynomials.affine(size)
        value, rest = divmod(given_size - offset, scale)
        low, high = ranges[size.dims[0]]
        if rest or not low <= value <= high:
            return f"a size of {path} is {given_size}, must be {_range_text(size, low, high)}"
        if values.setdefault(size.dims[0], value) != value:
            return f"a size of {path} is {given_size}, which another size contradicts"
    for path, size, given_size in pending:
        if all(dim in values for dim in size.dims) and size.evaluate(values) != given_size:
            return f"a size of {path} is {given_size}, must be {size.evaluate(values)}"
    for guard in program.guards:
        if python_text(guard) in given or not all(dim in values for dim in guard.dims):
            continue
        if not conditions.holds(guard, values):
            return f"it needs {python_text(guard)}"
    return None


def _range_text(size: SizeExpr, low: int, high: int) -> str:
    first, last = (size.evaluate({size.dims[0]: value}) for value in (low, high))
    step = size.evaluate({size.dims[0]: 1}) - size.evaluate({size.dims[0]: 0})
    return f"in {first}..{last}" + (f" step {step}" if step > 1 else "")


def _as_number(passed: Passed) -> Number | None:
    if passed.literal is None:
        return passed.number
    value = ast.literal_eval(passed.literal)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _equal(passed: Passed, literal: str) -> bool:
    value = ast.literal_eval(literal)
    number = _as_number(passed)
    return number is not None and not isinstance(value, bool) and value == number


def _wrong_kind(program: ProgramManifest, call: Call) -> str | None:
    """The first value, dtype or rank that a program does not take, whatever the sizes."""
    for fixed in program.fixed:
        passed = call.get(fixed.path)
        if passed is not None and passed.literal != fixed.value and not _equal(passed, fixed.value):
            return f"{fixed.path} must be {fixed.value}"
    for item in program.inputs:
        passed = call.get(item.path)
        if passed is None:
            continue
        if item.number is not None:
            if _as_number(passed) is None:
                return f"{item.path} must be {item.number}"
        elif (passed.dtype, len(passed.sizes)) != (item.dtype, len(item.shape)):
            return f"{item.path} must be {item.dtype} of rank {len(item.shape)}"
    return None


def _common_guards(programs: Sequence[ProgramManifest]) -> set[str]:
    """The conditions of all programs that could take a call: they belong to the model."""
    texts = [{python_text(guard) for guard in program.guards} for program in programs]
    return set.intersection(*texts) if texts else set()


def _text(call: Call) -> str:
    return ", ".join(f"{path} = {passed.text}" for path, passed in call.items() if passed.shown)
