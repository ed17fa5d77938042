"""The exported program against the eager module: twice in a row, and at the small ends."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver import quiet, state
from aoti_driver.building import seed
from aoti_driver.calls import Call
from aoti_driver.errors import DriverError, listed
from aoti_driver.source import SourceTree

_CALLS = 3


@dataclasses.dataclass(frozen=True)
class Observation:
    """What the eager module does in consecutive calls with the same arguments.

    Each result has the arguments too, as forward() may have written to them.
    """

    results: tuple[Any, ...]
    attributes: tuple[str, ...]
    buffers: tuple[str, ...]


def observe(
    module: torch.nn.Module, call: Call, tree: SourceTree, label: str, times: int = _CALLS
) -> Observation:
    """Calls a copy of the module; DriverError with the user's lines if that fails.

    attributes: those that still change from the second call on (a cache that is filled once is
    harmless). Both lists are empty for modules that can't be copied.
    """
    copied = state.clone(module)
    if copied is None:
        return Observation((), (), ())
    results = []
    snapshots = [state.snapshot(copied)]
    for _ in range(times):
        args, kwargs = call.fresh()
        seed()
        try:
            with torch.no_grad(), quiet.silenced():
                result = copied(*args, **kwargs)
        except Exception as e:
            raise EagerError(
                f"{label}: forward() fails{sizes_text(call)}:\n{tree.describe(e)}"
            ) from e
        results.append(_detached((result, args, kwargs)))
        snapshots.append(state.snapshot(copied))
    first, last = snapshots[1 if times > 1 else 0], snapshots[-1]
    return Observation(
        tuple(results),
        tuple(state.changed(first.attributes, last.attributes)) if times > 1 else (),
        tuple(state.changed(snapshots[0].buffers, last.buffers)),
    )


class EagerError(DriverError):
    """The module itself fails for a sample, before any export."""


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


def check_buffers(
    observed: Observation, ep: ExportedProgram, written: frozenset[str], label: str
) -> None:
    """Buffers that eager changes must be changed by the program (strict export loses some)."""
    targets = {spec.target: spec.arg.name for spec in ep.graph_signature.input_specs if spec.target}
    lost = [b for b in observed.buffers if targets.get(b) not in written]
    if lost:
        raise DriverError(
            f"{label}: forward() assigns the buffer {listed(f'self.{n}' for n in lost)}, and the "
            "exported program does not: it would return the first call's result for ever.\n"
            "  Update it in place: self.state.copy_(new) in place of self.state = new."
        )


def check_results(observed: Observation, ep: ExportedProgram, call: Call, label: str) -> None:
    """The program's results, called as often as eager was, against eager's."""
    eager = observed.results
    remembers = any(state.differences(eager[0], other) for other in eager[1:])
    for i, (expected, actual) in enumerate(zip(eager, run_program(ep, call, len(eager)))):
        problem = state.differences(expected, actual)
        if problem is None:
            continue
        if not remembers:
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
    module: torch.nn.Module, ep: ExportedProgram, call: Call, tree: SourceTree, label: str
) -> str | None:
    """What is wrong with the program for this call's sizes, or None."""
    observed = observe(module, call, tree, label, times=1)
    try:
        actual = list(run_program(ep, call, len(observed.results)))
    except Exception as e:
        message = str(e).strip().splitlines()
        return message[0] if message else type(e).__name__
    for expected, got in zip(observed.results, actual):
        if problem := state.differences(expected, got):
            return problem
    return None


def run_program(ep: ExportedProgram, call: Call, times: int) -> Iterator[Any]:
    """Results (with the arguments) of consecutive calls; the program's own state is kept."""
    with preserved(ep):
        program = ep.module(check_guards=False)
        for _ in range(times):
            args, kwargs = call.fresh()
            seed()
            with torch.no_grad():
                result = program(*args, **kwargs)
            yield _detached((result, args, kwargs))


@contextlib.contextmanager
def preserved(ep: ExportedProgram) -> Iterator[None]:
    """Puts buffers and constants back after the program was run."""
    tensors = [
        t
        for t in [*ep.state_dict.values(), *ep.constants.values()]
        if isinstance(t, torch.Tensor) and not isinstance(t, torch.nn.Parameter)
    ]
    saved = [t.detach().clone() for t in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(tensors, saved):
                tensor.copy_(value)


def small_ends(ranges: Mapping[str, tuple[int, int]]) -> list[dict[str, int]]:
    """The assignments with sizes 0 and 1, which torch.export treats apart: all, and each."""
    small = {name: low for name, (low, _) in ranges.items() if low <= 1}
    each = [{name: low} for name, low in small.items()]
    return [small, *each] if len(each) > 1 else each


def shrunk(call: Call, sizes: Mapping[str, int]) -> Call:
    """The call with smaller sizes for some dims, by cutting its tensors."""
    merged = {**call.sizes, **sizes}
    tensors = {}
    for argument in call.arguments:
        tensor = call.tensors()[argument.name]
        for i, size in enumerate(argument.spec.sizes(merged)):
            tensor = tensor.narrow(i, 0, size)
        tensors[argument.name] = tensor.contiguous()
    args, kwargs = call.with_tensors(tensors)
    return dataclasses.replace(call, args=args, kwargs=kwargs, sizes=merged)


def sizes_text(call: Call) -> str:
    if not call.sizes:
        return ""
    return f" for {listed(f'{n} = {v}' for n, v in sorted(call.sizes.items()))}"


def _detached(value: Any) -> Any:
    from torch.utils import _pytree as pytree

    detach: Callable[[torch.Tensor], torch.Tensor] = lambda t: t.detach().clone()  # noqa: E731
    return pytree.tree_map_only(torch.Tensor, detach, value)
