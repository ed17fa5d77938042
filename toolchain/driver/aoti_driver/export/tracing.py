"""A call of torch.export: the program, the symbols of its dims, and its assumptions about sizes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule
from torch.utils._sympy.value_ranges import ValueRanges

from aoti_driver.base import quiet
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import conditions
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.export import (
    assignments,
    building,
    calls,
    custom_objects,
    custom_operators,
    describe,
    given_masks,
    guards,
    inlining,
    memory_places,
    methods,
    recorded_calls,
    restrictions,
    spared_work,
    torchvision_models,
    whole_sizes,
)
from aoti_driver.export.auto_dims import DimsError
from aoti_driver.export.building import ModelSpec
from aoti_driver.export.calls import Call
from aoti_driver.export.decompositions import decompose
from aoti_driver.export.describe import Symbols
from aoti_driver.export.source import SourceTree
from aoti_driver.export.translate import Context, translate
from aoti_driver.program import (
    convolutions,
    recurrent,
    result_shapes,
    signature,
    size_arithmetic,
    torchvision_operators,
)
from aoti_driver.torch_internals import patching


@dataclasses.dataclass(frozen=True)
class Exported:
    """A checked exported program, and the names of its symbols.

    module: makes what runs the program, once; it keeps the program's weights in memory.
    """

    program: ExportedProgram
    call: Call
    symbols: Symbols
    module: Callable[[], GraphModule]
    guards: tuple[SizeExpr, ...] = ()


@dataclasses.dataclass(frozen=True)
class Mode:
    """Options for torch.export.

    oblivious: if torch's own operators compare a size with 0, 1 or another size, the answer is no,
    without a guard that would exclude such sizes. The program must still be right for them:
    export.py checks this for 0 and 1, and aoti_test for the large ends. And contiguous() copies
    where that does nothing for the sample: see recorded_calls.py.
    from_two: leave 0 and 1 out of the ranges, because an oblivious export may find guards for them.
    """

    oblivious: bool = False
    from_two: bool = False


# torch's words for a guard that a declared range does not imply, for a number in 1..2 or 0..1 that
# it takes for 2 or 1, and for a negative number that it takes for the size of a slice.
_AVOIDABLE = re.compile(
    r"satisfy the generated guard .* != |inferred a static shape of [012]\b|Invalid ranges \[0:-1\]"
)


class GuardError(DimsError):
    """Tracing assumed something of a size that its range does not imply, and need not have."""


def checked_export(
    tree: SourceTree, spec: ModelSpec, module: torch.nn.Module, call: Call, mode: Mode
) -> Exported:
    renamed = {n: _torch_name(n) for n in spec.dims.ranges if _torch_name(n) != n}
    floats = [a.path for a in call.arguments if a.spec.number == "float"]
    context = Context(spec.label, tree, spec.declared_dims, spec.dims, renamed, floats=floats)
    torch_dims = {
        name: _torch_dim(name, *ends, mode, spec.dims) for name, ends in spec.dims.ranges.items()
    }
    custom_objects.check(module, spec.strict, spec.label)
    building.seed()
    result_shapes.declare()
    torchvision_operators.complete()
    met: list[restrictions.Restriction] = []
    bodies = inlining.Bodies(tree)
    try:
        with (
            torch.no_grad(),
            quiet.silenced(),
            restrictions.recorded(tree) as met,
            _own_signature(module, call),
            guards.proved_ones_dropped(),
            assignments.at_varying_indices(),
            given_masks.used(),
            recurrent.kept_whole(),
            convolutions.layouts_of_every_host(),
            spared_work.spared(),
            size_arithmetic.remembered(),
            patching.options(
                "torch.fx.experimental._config", {"backed_size_oblivious": mode.oblivious}
            ),
        ):
            shapes = call.dynamic_shapes(module, torch_dims)
            args, kwargs = call.fresh_for_program()
            with (
                bodies,
                recorded_calls.RecordedCalls(contiguous=mode.oblivious),
                torchvision_models.without_branches(),
            ):
                ep = whole_sizes.kept(
                    lambda: torch.export.export(
                        module, args, kwargs, dynamic_shapes=shapes, strict=spec.strict
                    )
                )
            custom_objects.written_out(ep, tree, spec.label)
            ep = inlining.written_out(ep, bodies)
            ep = decompose(ep, spec.decompositions, spec.label)
            if spec.method is not None:
                ep = methods.without_unused_tensors(ep)
            custom_operators.refuse(ep, bodies.untraced, tree, spec.label)
    except DriverError:
        raise
    except Exception as e:
        if bodies.untraced:  # torch's error is a consequence
            calls: dict[Any, list[str]] = {op: [] for op in bodies.untraced}
            raise custom_operators.refusal(calls, bodies.untraced, spec.label) from None
        translated = translate(e, dataclasses.replace(context, restrictions=met))
        if _AVOIDABLE.search(str(e)):
            translated = GuardError(str(translated), translated.dims)
        raise translated from None
    inputs = [(a.path, a.spec) for a in call.arguments]
    placeholders = signature.tensor_inputs(ep)
    names = dict(zip(placeholders, (a.name for a in call.arguments)))
    offsets = {p: call.offsets.get(name, 0) for p, name in names.items()}
    memory_places.check(ep, offsets, names, spec.label)
    symbols = describe.match_symbols(ep, inputs, spec.label)
    ranges = guards.without_small_ends(spec.dims.ranges)
    runnable = functools.cache(lambda: ep.module(check_guards=False))
    try:
        found = guards.of_program(ep, runnable, symbols.expressions, ranges, spec.label)
        _allow_negative(ep, symbols, found, spec.dims)
        describe.check_ranges(ep, symbols, spec.dims, spec.label)
    except DriverError as e:
        # For such numbers, an oblivious export asks for less.
        unusual = any(low < 0 or high < 2 for low, high in spec.dims.ranges.values())
        raise (GuardError(str(e), {}) if unusual else e) from None
    return Exported(ep, call, symbols, runnable, found)


@contextlib.contextmanager
def _own_signature(module: torch.nn.Module, call: Call) -> Iterator[None]:
    own = vars(module).get("forward")
    calls.name_keywords(module, call)
    calls.take_floats(module, call)
    try:
        yield
    finally:
        if own is not None:
            module.forward = own
        else:
            vars(module).pop("forward", None)


def _allow_negative(
    ep: ExportedProgram, symbols: Symbols, found: Sequence[SizeExpr], dims: Dims
) -> None:
    """Restores negative ends of ranges where no guard excludes them: torch puts 0 in their
    place.
    """
    negative = {name: ends for name, ends in dims.ranges.items() if ends[0] < 0}
    for root, expression in symbols.expressions.items():
        known = ep.range_constraints.get(root)
        if known is None or str(expression) not in negative:
            continue
        name = str(expression)
        low, high = negative[name]
        alone = [guard for guard in found if guard.dims == (name,)]
        fit = [n for n in range(low, min(high, -1) + 1) if conditions.all_hold(alone, {name: n})]
        if fit and known.lower <= 0:
            ep.range_constraints[root] = ValueRanges(fit[0], min(high, known.upper))


def _torch_dim(name: str, low: int, high: int, mode: Mode, dims: Dims) -> Any:
    if mode.from_two and high > 2 and low >= 0:  # torch takes no range of a single size
        low = max(low, 2)
    if name in dims.numbers:
        if low < 0:
            # Dim.DYNAMIC refuses negative ends, but the export takes them, if some are not.
            return dataclasses.replace(Dim.DYNAMIC(min=0), min=low, max=max(high, 2))
        return Dim.DYNAMIC(min=low, max=high)
    return Dim(_torch_name(name), min=low, max=high)


def _torch_name(name: str) -> str:
    """A name for torch, which parses names of dims with sympy, where some names have another
    meaning.
    """
    try:
        parsed = sympy.sympify(name)
    except Exception:  # names such as "lambda" do not parse
        parsed = None
    return name if isinstance(parsed, sympy.Symbol) else f"{name}_dim"
