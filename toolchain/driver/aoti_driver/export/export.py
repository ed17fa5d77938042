"""``export``: writes graph, weights and manifest, from Python source, weights and sample inputs."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges

from aoti_driver.base import files, quiet
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import conditions, dims, manifest_file, polynomials
from aoti_driver.contract.program_parts import Input
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.size_expr import python_text
from aoti_driver.export import (
    auto_dims,
    building,
    checks,
    describe,
    guards,
    locations,
    methods,
    precision,
    pytrees,
    results,
)
from aoti_driver.export.building import ModelSpec
from aoti_driver.export.calls import Call
from aoti_driver.export.interpret import Runner
from aoti_driver.export.source import SourceTree
from aoti_driver.export.state import Trials
from aoti_driver.export.torch_sizes import from_sympy
from aoti_driver.export.tracing import Exported, GuardError, Mode, checked_export
from aoti_driver.program import aliasing, graph_file, weights_file

# The modes are tried in this order.
_MODES = (Mode(), Mode(oblivious=True), Mode(oblivious=True, from_two=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True)
    building.add_source_arguments(parser)
    for out in ("graph", "weights", "manifest"):
        parser.add_argument(f"--out_{out}", required=True)
    parser.add_argument("--out_locations", help="JSON: the source line of each node of the graph")


def run(args: argparse.Namespace) -> None:
    # The last bits of a sum depend on the number of threads, and constants may be sums.
    torch.set_num_threads(1)
    with files.scratch_directory() as scratch, quiet.without_warnings():
        request = read_spec(args.spec, building.ExportSpec)
        tree, weight_files = building.lay_out(args, scratch / "runfiles")

        def export(request: building.ExportSpec) -> tuple[ModelSpec, Exported]:
            spec = building.parse_spec(request)
            return spec, export_model(tree, spec, weight_files)

        with methods.named_in_errors(request.method):
            with tree.as_working_directory():
                (spec, exported), found = auto_dims.resolve(request, export)
            write(exported, tree, spec, args)
    if found:
        sys.stderr.write(found)
        for guard in exported.guards:
            sys.stderr.write(f"  Every call must satisfy {python_text(guard)}.\n")


class _SmallEndError(auto_dims.DimsError):
    """The program is wrong for a size of 0 or 1."""


def export_model(
    tree: SourceTree, spec: ModelSpec, weight_files: list[tuple[str, str]]
) -> Exported:
    module = building.build_module(tree, spec, weight_files)
    trials = Trials(module, lambda: building.build_module(tree, spec, weight_files), spec.label)
    call = _sample_call(tree, spec, module)
    try:
        observed = checks.observe(trials, call, tree, spec.label)
    except checks.EagerError as e:
        _explain_by_torch(tree, spec, trials, e)
        raise
    if observed.results:
        result, _, _ = observed.results[0]
        results.check_types(result, spec.label)
    checks.check_attributes(observed, spec.label)
    small = any(low < 2 for low, _ in spec.dims.ranges.values())
    first: DriverError | None = None
    unequal: Exported | None = None
    for mode in _MODES:
        if mode.from_two and not small:
            continue
        try:
            exported = checked_export(tree, spec, trials.module, call, mode)
            written = aliasing.mutated_inputs(exported.program)
            runner = Runner(exported.program, exported.module(), exported.symbols, written, tree)
            checks.check_buffers(observed, runner, spec.label)
            checks.check_results(observed, runner, call, spec.label)
            _check_small_ends(tree, spec, trials, exported, runner)
            if unequal is not None and _wrong_where_equal(tree, spec, trials, unequal, runner):
                break
        except (GuardError, _SmallEndError) as e:
            first = first or e
        except DriverError as e:
            if unequal is not None:
                break
            raise first or e from None
        else:
            if not guards.inequalities(exported.guards):
                return _widened(exported, spec)
            unequal = unequal or exported
    if unequal is not None:
        return _widened(unequal, spec)
    assert first is not None
    raise first


def _wrong_where_equal(
    tree: SourceTree, spec: ModelSpec, trials: Trials, unequal: Exported, runner: Runner
) -> bool:
    """Whether a program without guards against equal sizes is wrong for such sizes.

    unequal: another export of the model, which has these guards.
    """
    others = guards.without_inequalities(unequal.guards)
    ranges = guards.without_small_ends(spec.dims.ranges)
    for equation in guards.inequalities(unequal.guards):
        sizes = conditions.satisfied([equation, *others], ranges, unequal.call.sizes)
        if sizes is None:
            continue
        try:
            call = _sample_call(tree, spec, trials.module, sizes)
            if checks.program_problem(trials, runner, call, tree, spec.label) is not None:
                return True
        except DriverError:  # forward() refuses these sizes too
            return True
    return False


def write(exported: Exported, tree: SourceTree, spec: ModelSpec, args: argparse.Namespace) -> None:
    ep = exported.program
    precision.lower(ep, spec.precision)
    replaced = results.replace(ep)
    targets = [args.out_graph, args.out_weights, args.out_manifest]
    if args.out_locations:
        targets.append(args.out_locations)
    with files.outputs(*targets) as out:
        graph, weights, manifest = out[:3]
        if args.out_locations:
            locations.write(ep, tree, out[3])
        pytrees.make_serializable(ep)
        graph_file.save_graph(ep, graph)
        weights_file.write_weights(weights, graph_file.stored_tensors(ep))
        document = describe.make_manifest(
            ep,
            graph,
            label=spec.label,
            name=spec.name,
            strict=spec.strict,
            dims=spec.dims,
            inputs=_inputs(exported.call),
            symbols=exported.symbols,
            guards=exported.guards,
            replaced=replaced,
            fixed=exported.call.fixed,
            precision=spec.precision,
        )
        manifest.write_text(manifest_file.to_json(document), encoding="utf-8")


def _sample_call(
    tree: SourceTree, spec: ModelSpec, module: torch.nn.Module, sizes: dict[str, int] | None = None
) -> Call:
    """A call whose tensors have memory of their own and are not views, so that nothing else writes
    to them.
    """
    call = building.make_call(tree, spec, module, sizes)
    args, kwargs = call.fresh()
    offsets = {name: int(t.storage_offset()) for name, t in call.tensors().items()}
    return dataclasses.replace(call, args=args, kwargs=kwargs, offsets=offsets)


def _explain_by_torch(
    tree: SourceTree, spec: ModelSpec, trials: Trials, error: checks.EagerError
) -> None:
    """Raises torch's suggestion if forward() refuses the sample sizes.

    Sample sizes are prime and all different, so a model that needs equal or divisible sizes refuses
    them. For sizes that it accepts, torch.export finds how they are related.
    """
    if spec.sample_inputs is not None or not spec.dims.ranges:
        return
    declared = [size for s in spec.inputs.values() for size in s.shape]
    sizes, message = dims.sample_sizes(spec.dims, declared), str(error.__cause__)
    smooth = dims.sample_sizes(spec.dims, declared, smooth=True)
    met = {_without_numbers(message)}
    while True:
        other: tuple[dict[str, int], str] | None = None
        for candidate in [smooth, *_other_sizes(spec, sizes, message)]:
            call = _sample_call(tree, spec, trials.module, candidate)
            try:
                checks.observe(trials, call, tree, spec.label, times=1)
            except checks.EagerError as e:
                text = str(e.__cause__)
                if other is None and candidate != smooth and _without_numbers(text) not in met:
                    other = candidate, text
                continue
            # An export that succeeds explains nothing, since forward() failed for the first sizes.
            checked_export(tree, spec, trials.module, call, Mode())
            return
        if other is None:
            return
        # These sizes satisfy what the first ones did not: what is left to satisfy?
        sizes, message = other
        met.add(_without_numbers(message))


def _without_numbers(message: str) -> str:
    return re.sub(r"\d+", "0", message)


def _other_sizes(
    spec: ModelSpec, sizes: Mapping[str, int], message: str
) -> Iterator[dict[str, int]]:
    """Single dims changed by the differences of the sizes that torch names."""
    named = list(dict.fromkeys(int(n) for n in re.findall(r"\d+", message)))[:6]
    # Larger sizes first: a dim of size 1 would be broadcast, which hides the size that it must
    # equal.
    shifts = sorted({b - a for a in named for b in named if a != b}, reverse=True)
    for name, (low, high) in reversed(list(spec.dims.ranges.items())):
        for shift in shifts:
            if max(low, 2) <= sizes[name] + shift <= high:
                yield {**sizes, name: sizes[name] + shift}


def _check_small_ends(
    tree: SourceTree, spec: ModelSpec, trials: Trials, exported: Exported, runner: Runner
) -> None:
    """torch.export assumes that sizes are at least 2; this checks the program at 0 and 1."""
    shapes = dict.fromkeys(size for s in spec.inputs.values() for size in s.shape)
    quotients = [size for size in shapes if polynomials.quotients(size)]
    for sizes in checks.small_ends(spec.dims.ranges, quotients):
        if not conditions.all_hold(exported.guards, {**exported.call.sizes, **sizes}):
            continue
        larger = any(size > exported.call.sizes[name] for name, size in sizes.items())
        call = (
            _sample_call(tree, spec, trials.module, {**exported.call.sizes, **sizes})
            if larger
            else checks.shrunk(exported.call, sizes)
        )
        found = checks.program_problem(trials, runner, call, tree, spec.label)
        if found is not None:
            small = ((n, s) for n, s in sizes.items() if s < 2)
            name, size = next(small, next(iter(sizes.items())))
            place, text = spec.dims.declared_text(name, max(2, size + 1), spec.dims.ranges[name][1])
            what = "value" if name in spec.dims.numbers else "size"
            declared = spec.dims.declared_name(name)
            raise _SmallEndError(
                f"{spec.label}: {place}: the exported program is wrong"
                f"{checks.sizes_text(call)}: {found}\n  torch.export takes sizes to be at least 2, "
                f'and forward() does something else for {size}. Declare "{text}", and a second '
                f"model for the {what} {size} if you need one.",
                {**spec.declared_dims, declared: text} if declared in spec.declared_dims else {},
            )


def _widened(exported: Exported, spec: ModelSpec) -> Exported:
    """Restores the declared lower ends, which torch raises to 2 for some derived dims.

    The result has another module, since later steps free weights one by one.
    """
    constraints: dict[Any, Any] = exported.program.range_constraints
    for symbol, expression in exported.symbols.expressions.items():
        known = constraints.get(symbol)
        if known is not None and isinstance(expression, sympy.Symbol):
            low, _ = spec.dims.ranges[str(expression)]
            if known.lower == 2 and low < 2:
                constraints[symbol] = ValueRanges(low, known.upper)
    for expression in list(constraints):
        size = from_sympy(expression.subs(dict(exported.symbols.expressions)))
        if polynomials.computed(size):  # torch guesses its range from the sample
            constraints[expression] = ValueRanges(*spec.dims.range(size))
    return dataclasses.replace(exported, module=exported.program.module)


def _inputs(call: Call) -> list[Input]:
    return [
        Input(
            a.name,
            a.path,
            a.spec.dtype,
            a.spec.shape,
            stride=(),
            values=None if a.spec.value is not None else a.spec.values,
            value=a.spec.value,
            number=a.spec.number,
            default=a.default,
        )
        for a in call.arguments
    ]
