"""Compares the exported program with the eager module, in two consecutive calls and at small
sizes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from aoti_driver.base import quiet
from aoti_driver.base.errors import DriverError, listed
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.export import state
from aoti_driver.export.building import seed
from aoti_driver.export.calls import Call
from aoti_driver.export.imports import undeclared
from aoti_driver.export.interpret import Runner
from aoti_driver.export.source import SourceTree
from aoti_driver.export.state import Trials

_ABOUT_INPUTS = re.compile(
    r"index .*out of |dtype|scalar type|not implemented for '|"
    r"\b(Bool|Byte|Char|Short|Int|Long|Half|BFloat16|Float|Double|ComplexFloat|ComplexDouble)\b"
)

# So many combinations of sizes are all tried.
_FEW = 16

# So many values of a dim are searched for those that make a quotient 0 or 1.
_SEARCHED = 4096

# The effect of state that one call stores is visible in the next one.
_CALLS = 2


@dataclasses.dataclass(frozen=True)
class Observation:
    """The behaviour of the eager module in consecutive calls with the same arguments.

    Each result also has the arguments, because forward() may have written to them.
    """

    results: tuple[Any, ...]
    attributes: tuple[str, ...]
    buffers: tuple[str, ...]


def observe(
    trials: Trials, call: Call, tree: SourceTree, label: str, times: int = _CALLS
) -> Observation:
    """Calls a copy of the module; raises DriverError with the user's lines if that fails.

    attributes: those that still change in the last call (a cache that is filled once does no harm).
    Everything is empty for modules that can neither be copied nor built again.
    """
    with trials.module_to_try() as module:
        if module is None:
            return Observation((), (), ())
        results = []
        snapshots = [state.snapshot(module)] if times > 1 else []
        for _ in range(times):
            results.append(_call(module, call, tree, label))
            if times > 1:
                snapshots.append(state.snapshot(module))
    if times == 1:
        return Observation(tuple(results), (), ())
    before, first, last = snapshots[0], snapshots[1], snapshots[-1]
    return Observation(
        tuple(results),
        tuple(state.changed(first.attributes, last.attributes)),
        tuple(state.changed(before.buffers, last.buffers)),
    )


def _call(module: torch.nn.Module, call: Call, tree: SourceTree, label: str) -> Any:
    args, kwargs = call.fresh()
    seed()
    try:
        with torch.no_grad(), quiet.silenced():
            result = module(*args, **kwargs)
    except (Exception, SystemExit) as e:
        raise EagerError(
            f"{label}: forward() fails{sizes_text(call)}:{undeclared(e, tree)}\n"
            f"{tree.describe(e)}{_specs(e, call)}"
        ) from e
    return state.own(result), args, kwargs


def _specs(error: BaseException, call: Call) -> str:
    """The inputs as the BUILD file declares them, if the error is about dtypes or indices."""
    if not call.arguments or not _ABOUT_INPUTS.search(str(error)):
        return ""
    specs = (f'    "{a.path}": "{a.spec}",' for a in call.arguments)
    return "\n".join(["\n  The inputs are declared as", *specs])


class EagerError(DriverError):
    """The module itself fails for a sample, before the export."""


def check_attributes(observed: Observation, label: str) -> None:
    if not observed.attributes:
        return
    names = [f"self.{n}" for n in observed.attributes]
    raise DriverError(
        f"{label}: forward() changes {listed(names)} from call to call. An exported program keeps "
        "tensors only, so it would return the first call's result for ever.\n"
        "  Make it a tensor that lives in the module: in __init__ "
        f'self.register_buffer("{observed.attributes[0].split(".")[-1]}", torch.zeros(...)), and '
        "in forward() update it in place, as in self.state.copy_(new) or self.count.add_(1). Or "
        "pass the state as an argument and return it."
    )


def check_buffers(observed: Observation, runner: Runner, label: str) -> None:
    """Checks that the program writes to the buffers that eager changes (strict export loses
    some).
    """
    lost = [b for b in observed.buffers if b not in runner.written]
    if lost:
        raise DriverError(
            f"{label}: forward() assigns the buffer {listed(f'self.{n}' for n in lost)}, and the "
            "exported program does not: it would return the first call's result for ever.\n"
            "  Update it in place: self.state.copy_(new) in place of self.state = new."
        )


def check_results(observed: Observation, runner: Runner, call: Call, label: str) -> None:
    """Compares the program's results with eager's, for as many calls as eager ran."""
    eager = observed.results
    for i, (expected, actual) in enumerate(zip(eager, runner.results(call, len(eager)))):
        problem = state.differences(expected, actual)
        if problem is None:
            continue
        if not any(state.differences(eager[0], other) for other in eager[1:]):
            raise DriverError(
                f"{label}: the exported program does not compute what forward() does"
                f"{sizes_text(call)}: {problem}"
            )
        raise DriverError(
            f"{label}: the exported program is wrong in call {i + 1} ({problem}): "
            "forward() remembers something outside of the module's buffers, such as "
            "a global variable. Keep it in a buffer (self.register_buffer) and update it in place."
        )


def program_problem(
    trials: Trials, runner: Runner, call: Call, tree: SourceTree, label: str
) -> str | None:
    """What is wrong with the program for this call's sizes, or None."""
    observed = observe(trials, call, tree, label, times=1)
    try:
        actual, problem = runner.checked_leaves(call)
    except Exception as e:
        message = str(e).strip().splitlines()
        return message[0] if message else type(e).__name__
    if problem is None and observed.results:
        return state.differences(observed.results[0], actual)
    return problem


def small_ends(
    ranges: Mapping[str, tuple[int, int]], quotients: Sequence[SizeExpr] = ()
) -> list[dict[str, int]]:
    """The assignments with sizes 0 and 1, which torch.export treats specially: each dim alone,
    which tells best what is wrong, and all together; or every one where there are few. For
    quotients, the ends of what makes them 0 and 1: ``seq // 4`` is 1 for 4 and 7. And negative
    numbers, of which no size consists either.

    In a small range, what holds from 2 on is taken for a fact, and leaves no guard behind.
    """
    found = []
    for size in (0, 1):
        small = {name: size for name, (low, high) in ranges.items() if low <= size <= high}
        found += [{name: size} for name in small]
        if len(small) > 1:
            found.append(small)
    if math.prod(high - low + 1 for low, high in ranges.values()) <= _FEW:
        sizes = [range(low, high + 1) for low, high in ranges.values()]
        every = [dict(zip(ranges, values)) for values in itertools.product(*sizes)]
        with_small = [chosen for chosen in every if any(size < 2 for size in chosen.values())]
        found += [chosen for chosen in with_small if chosen not in found]
    for name, (low, high) in ranges.items():
        if low < 0:
            found += [{name: number} for number in dict.fromkeys((low, min(-1, high)))]
    for quotient in quotients:
        lowest = {name: ranges[name][0] for name in quotient.dims}
        for name in quotient.dims:
            fitting: dict[int, list[dict[str, int]]] = {0: [], 1: []}
            for size in itertools.islice(range(lowest[name], ranges[name][1] + 1), _SEARCHED):
                chosen = {**lowest, name: size}
                fitting.get(quotient.evaluate(chosen), []).append(chosen)
            for same in fitting.values():
                ends = same if len(same) < 2 else [same[0], same[-1]]
                found += [chosen for chosen in ends if chosen not in found]
    return found


def shrunk(call: Call, sizes: Mapping[str, int]) -> Call:
    """The call with smaller sizes for some dims, made by slicing its tensors."""
    merged = {**call.sizes, **sizes}
    values: dict[str, Any] = {}
    for argument in call.arguments:
        if argument.spec.value is not None:
            values[argument.name] = merged[argument.spec.value]
        if argument.spec.number is not None:
            continue
        tensor = call.tensors()[argument.name]
        for i, size in enumerate(argument.spec.sizes(merged)):
            tensor = tensor.narrow(i, 0, size)
        values[argument.name] = tensor.contiguous()
    args, kwargs = call.with_values(values)
    return dataclasses.replace(call, args=args, kwargs=kwargs, sizes=merged)


def sizes_text(call: Call) -> str:
    if not call.sizes:
        return ""
    sizes = call.dims.declared_sizes(call.sizes)
    return f" for {listed(f'{n} = {v}' for n, v in sorted(sizes.items()))}"
