"""Builds a module from its entry point and prepares it for export."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from aoti_driver.base.errors import DriverError, plural
from aoti_driver.contract import dims, json_records
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.specs import (
    Literal,
    TensorSpec,
    parse_specs,
    split_literals,
    with_numbers,
)
from aoti_driver.cuda import interpreted
from aoti_driver.export import (
    calls,
    methods,
    parameter_dtypes,
    precision,
    state_dict,
    subclasses,
)
from aoti_driver.export.imports import import_attribute, undeclared
from aoti_driver.export.source import SourceTree
from aoti_driver.program import compiled_operators, operators, triton_operators


@dataclasses.dataclass(frozen=True)
class ExportSpec:
    """The request: the attributes of ``torch_export``; sample_inputs: None for none.

    method: None for forward(), with all of the module's tensors.
    """

    label: str
    name: str
    entry_point: str
    method: str | None
    inputs: dict[str, str]
    sample_inputs: str | None
    dynamic_dims: dict[str, str]
    strict: bool
    decompositions: tuple[str, ...]
    precision: str = dataclasses.field(default=precision.FLOAT32, metadata=json_records.OPTIONAL)


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """The request with its texts parsed.

    inputs: what varies from call to call. literals: arguments that are the same in every call.
    dims: those of dynamic_dims, and a dim for each int among the inputs.
    """

    label: str
    name: str
    entry_point: str
    method: str | None
    inputs: Mapping[str, TensorSpec]
    literals: Mapping[str, Literal]
    sample_inputs: str | None
    declared_dims: Mapping[str, str]
    dims: Dims
    strict: bool
    decompositions: Sequence[str]
    precision: str


def parse_spec(spec: ExportSpec) -> ModelSpec:
    texts, literals = split_literals(spec.inputs)
    if literals and spec.sample_inputs is not None:
        raise DriverError(
            f'{spec.label}: inputs["{next(iter(literals))}"] is a value, but sample_inputs gives '
            "the values of all arguments that do not vary: return it there"
        )
    declared = dims.parse_dims(spec.dynamic_dims, spec.label)
    inputs, parsed = with_numbers(parse_specs(texts, declared, spec.label), declared)
    return ModelSpec(
        label=spec.label,
        name=spec.name,
        entry_point=spec.entry_point,
        method=spec.method,
        inputs=inputs,
        literals=literals,
        sample_inputs=spec.sample_inputs,
        declared_dims=spec.dynamic_dims,
        dims=parsed,
        strict=spec.strict,
        decompositions=spec.decompositions,
        precision=spec.precision,
    )


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--source", **repeated, metavar="RUNFILE=PATH")
    parser.add_argument("--import_root", **repeated, metavar="RUNFILES_DIR")
    parser.add_argument("--weight", **repeated, metavar="RUNFILE=PATH")
    parser.add_argument("--operators", **repeated, metavar="LABEL=PATH")
    parser.add_argument("--operator_module", **repeated, metavar="RUNFILE")
    parser.add_argument("--operator_program", **repeated, metavar="MODULE=RUNFILES")
    parser.add_argument("--triton_module", **repeated, metavar="RUNFILE")


def lay_out(args: argparse.Namespace, root: Path) -> tuple[SourceTree, list[tuple[str, str]]]:
    """The tree of sources and weights, activated; and the weights as (runfiles path, path)."""
    tree = SourceTree(root, args.import_root)
    tree.add(args.source, "--source")
    paths = tree.add(args.weight, "--weight")
    tree.check_torch(torch.__version__)
    tree.activate()
    operators.load(args.operators)
    compiled_operators.stand_in(args.operator_program, root)
    operators.import_fakes(args.operator_module, args.import_root)
    if args.triton_module:
        interpreted.launch_on_cpu()
        triton_operators.import_modules(args.triton_module, args.import_root)
    return tree, [(tree.name(p), p) for p in paths]


def build_module(
    tree: SourceTree, spec: ModelSpec, weight_files: Sequence[tuple[str, str]]
) -> torch.nn.Module:
    """Calls the entry point and loads the weights; the result is in evaluation mode.

    Randomly initialised weights are the same in every run, with any number of cores.
    """
    where = f'{spec.label}: entry_point "{spec.entry_point}"'
    seed()
    entry = import_attribute(tree, spec.entry_point, where)
    if not callable(entry):
        raise DriverError(
            f"{where}: {type(entry).__name__} is not callable: name a function that returns the "
            "module, or the module's class"
        )
    paths = [path for _, path in weight_files]
    takes_paths = bool(paths) and _takes_arguments(entry)
    try:
        with torch.no_grad():
            module = entry(*paths) if takes_paths else entry()
    except BaseException as e:
        raise _entry_failed(e, entry, where, tree, spec, paths) from None
    if not isinstance(module, torch.nn.Module):
        raise DriverError(
            f"{where}: it returned {type(module).__name__}, expected a torch.nn.Module"
        )
    if isinstance(module, torch.jit.ScriptModule):
        raise DriverError(
            f"{where}: it returned a TorchScript module, which torch.export does not take. Load "
            "its weights into the Python module, with load_state_dict(torch.jit.load(path)"
            ".state_dict()), or convert it as docs/recipes.md shows."
        )
    if paths and not takes_paths:
        state_dict.load_by_name(module, weight_files, spec.label)
    subclasses.unwrap(module)
    parameter_dtypes.store_as_known(module)
    # The module of an ExportedProgram has only one mode, and raises an exception for the other.
    with contextlib.suppress(NotImplementedError):
        module.eval()
    if spec.method is not None:
        methods.call_in_place_of_forward(module, spec.method, spec.label)
    return module


def make_call(
    tree: SourceTree,
    spec: ModelSpec,
    module: torch.nn.Module,
    sizes: Mapping[str, int] | None = None,
    sample_seed: int = 0,
) -> calls.Call:
    """Sample arguments with the given sizes of the free dims; without sizes, those for tracing."""
    declared = [size for s in spec.inputs.values() for size in s.shape]
    chosen = dict(sizes) if sizes else dims.sample_sizes(spec.dims, declared)
    if spec.sample_inputs is None:
        call = calls.from_specs(module, spec.inputs, spec.literals, chosen, spec.label, sample_seed)
        return dataclasses.replace(call, dims=spec.dims)
    where = f'{spec.label}: sample_inputs "{spec.sample_inputs}"'
    function = import_attribute(tree, spec.sample_inputs, where)
    seed(sample_seed)
    try:
        sample = calls.call_sample_inputs(
            function,
            spec.dims.declared_sizes(chosen),
            spec.dims.fixed,
            override=sizes is not None,
        )
    except BaseException as e:
        raise DriverError(f"{where}: it failed:\n{tree.describe(e)}") from None
    call = calls.from_sample(module, sample, spec.inputs, spec.dims, spec.label)
    return dataclasses.replace(call, dims=spec.dims)


def seed(value: int = 0) -> None:
    """Seeds all generators of random numbers that a model may use."""
    random.seed(value)
    torch.manual_seed(value)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(value)


def _takes_arguments(entry: Any) -> bool:
    try:
        parameters = inspect.signature(entry).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        p.kind is p.VAR_POSITIONAL or (p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        for p in parameters
    )


def _entry_failed(
    error: BaseException,
    entry: Any,
    where: str,
    tree: SourceTree,
    spec: ModelSpec,
    paths: Sequence[str],
) -> DriverError:
    if explained := state_dict.explain_load_state_dict(error):
        frames = "\n".join(str(f) for f in tree.frames(error.__traceback__))
        return DriverError(
            f"{spec.label}: weights: they do not fit the module that {spec.entry_point} builds:\n"
            f"{frames}\n{tree.scrub(explained)}"
        )
    if isinstance(error, TypeError) and not tree.frames(error.__traceback__):
        given = f"{plural(len(paths), 'weight file')}" if paths else "no weights"
        return DriverError(
            f"{where}: it takes {_signature(entry)}, and was called with {given}: "
            f"{tree.scrub(str(error))}"
        )
    return DriverError(f"{where}: it failed:{undeclared(error, tree)}\n{tree.describe(error)}")


def _signature(entry: Any) -> str:
    try:
        return str(inspect.signature(entry))
    except (TypeError, ValueError):
        return "unknown arguments"
