"""The model that the compiled one is compared with: the user's module, or the frozen program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from aoti_driver.base import quiet
from aoti_driver.base.errors import DriverError, listed
from aoti_driver.contract import conditions, dims
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.size_expr import python_text
from aoti_driver.contract.specs import specs_from_manifest
from aoti_driver.export import building, checks
from aoti_driver.export.building import ModelSpec
from aoti_driver.export.calls import Call
from aoti_driver.export.samples import make_inputs
from aoti_driver.export.source import SourceTree
from aoti_driver.program import signature
from aoti_driver.verify.points import Sizes

# The largest test value of a number without a declared range.
_ANY = 1024


@dataclasses.dataclass(frozen=True)
class Recorded:
    """One call: inputs before it, outputs, and inputs after it that it wrote to."""

    sizes: Sizes
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    mutated: dict[str, torch.Tensor]

    def place(self) -> str:
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return f" ({sizes})" if sizes else ""


class Reference(Protocol):
    """A model that keeps its state from call to call."""

    def sample_sizes(self) -> Sizes: ...

    def call(self, sizes: Sizes, seed: int) -> Recorded: ...


class EagerReference:
    """The user's module, built again from its source."""

    def __init__(
        self,
        tree: SourceTree,
        spec: ModelSpec,
        weights: list[tuple[str, str]],
        manifest: ProgramManifest,
    ) -> None:
        self._tree = tree
        self._spec = spec
        self._manifest = manifest
        self._module = building.build_module(tree, spec, weights)
        self._sample = building.make_call(tree, spec, self._module)

    def sample_sizes(self) -> Sizes:
        return dict(self._sample.sizes)

    def call(self, sizes: Sizes, seed: int) -> Recorded:
        call = self._make_call(sizes, seed)
        args, kwargs = call.fresh()
        building.seed(seed)
        try:
            with torch.no_grad(), quiet.silenced():
                result = self._module(*args, **kwargs)
        except Exception as e:
            raise DriverError(
                f"{self._spec.label}: forward() fails{checks.sizes_text(call)}:\n"
                f"{self._tree.describe(e)}"
            ) from e
        after = dataclasses.replace(call, args=args, kwargs=kwargs).tensors()
        return _record(call.sizes, call.inputs(), pytree.tree_leaves(result), after, self._manifest)

    def _make_call(self, sizes: Sizes, seed: int) -> Call:
        if self._spec.sample_inputs is None:
            return building.make_call(self._tree, self._spec, self._module, sizes, seed)
        # The user's function is only called with sizes that torch.export could have traced.
        traceable = {name: max(size, 2) for name, size in sizes.items()}
        call = building.make_call(self._tree, self._spec, self._module, traceable, seed)
        small = {n: s for n, s in sizes.items() if s < 2 and call.sizes.get(n) == traceable[n]}
        return checks.shrunk(call, small) if small else call


def test_ranges(manifest: ProgramManifest) -> dict[str, tuple[int, int]]:
    """The ranges of the free dims; for numbers without a range, the values that sizes can have."""
    numbers = {i.value for i in manifest.inputs}
    return {
        d.name: (max(d.min, -_ANY), min(d.max, max(d.min, 0) + _ANY))
        if d.name in numbers and d.max - d.min >= 2**62
        else (d.min, d.max)
        for d in manifest.dims
        if d.alias is None
    }


class ProgramReference:
    """The frozen program (loaded flat), run by PyTorch, for programs without source."""

    def __init__(self, ep: ExportedProgram, manifest: ProgramManifest) -> None:
        self._manifest = manifest
        self._module = ep.module(check_guards=False)
        self._leaves = list((ep.example_inputs or ((), {}))[0])
        self._is_input = signature.is_input(ep)
        self._specs = specs_from_manifest(manifest)

    def sample_sizes(self) -> Sizes:
        manifest = self._manifest
        ranges = test_ranges(manifest)
        numbers = {i.value for i in manifest.inputs}
        declared = [size for i in manifest.inputs for size in i.shape]
        wanted = dims.sample_sizes(dims.Dims(ranges, {}, {}, tuple(ranges)), declared)
        wanted = {n: min(s, 8) if n in numbers else s for n, s in wanted.items()}
        found = conditions.satisfied(manifest.guards, ranges, wanted)
        if found is None:
            raise DriverError(
                f"{manifest.label}: found no sizes for a test that satisfy all of the program's "
                f"guards: {listed(map(python_text, manifest.guards))}. Declare narrower ranges in "
                "dynamic_dims."
            )
        return found

    def call(self, sizes: Sizes, seed: int) -> Recorded:
        inputs = make_inputs(self._specs, sizes, seed)
        for item in self._manifest.inputs:
            if item.value is not None:
                inputs[item.name] = torch.tensor(sizes[item.value], dtype=torch.int64)
        given = {name: tensor.clone() for name, tensor in inputs.items()}
        numbers = {i.name for i in self._manifest.inputs if i.value is not None}
        values = iter([int(t) if n in numbers else t for n, t in given.items()])
        args: list[Any] = [
            next(values) if is_input else leaf
            for leaf, is_input in zip(self._leaves, self._is_input, strict=True)
        ]
        with torch.no_grad():
            result = self._module(*args)
        return _record(sizes, inputs, pytree.tree_leaves(result), given, self._manifest)


def _record(
    sizes: Mapping[str, int],
    inputs: Mapping[str, torch.Tensor],
    leaves: list[Any],
    after: Mapping[str, torch.Tensor],
    manifest: ProgramManifest,
) -> Recorded:
    """Copies tensors that later calls could change; the model's results may be views of its
    state.
    """
    results = outputs_of(leaves, manifest)
    return Recorded(
        sizes=dict(sizes),
        inputs={name: _copy(tensor) for name, tensor in inputs.items()},
        outputs={o.name: _copy(t) for o, t in zip(manifest.outputs, results)},
        mutated={i.name: _copy(after[i.name]) for i in manifest.inputs if i.mutated},
    )


_NUMBERS = {"bool": torch.bool, "int": torch.int64, "float": torch.float64}


def outputs_of(leaves: list[Any], manifest: ProgramManifest) -> list[torch.Tensor]:
    """The tensors among the leaves of a result, with its numbers as the program returns them.

    Raises DriverError if the result has not the structure and the constants in the manifest.
    """
    if manifest.result is None:
        results = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if len(results) != len(manifest.outputs):
            raise DriverError(
                f"{manifest.label}: forward() returned {len(results)} tensors, the program returns "
                f"{len(manifest.outputs)}"
            )
        return results
    nodes = manifest.result.leaves()
    if len(leaves) != len(nodes):
        raise DriverError(
            f"{manifest.label}: forward() returned {len(leaves)} values, the program returns "
            f"{len(nodes)}"
        )
    outputs = {output.name: output for output in manifest.outputs}
    results = []
    for node, leaf in zip(nodes, leaves):
        got = None
        if node.kind == "output":
            number = outputs[node.name].number
            if isinstance(leaf, torch.Tensor):
                got = leaf
            elif number is not None and type(leaf).__name__ == number:
                got = torch.tensor(leaf, dtype=_NUMBERS[number])
            expected: str = number or "tensor"
        else:
            # A program loses its strings.
            same = (node.kind, node.value) == _constant(leaf) or (node.kind, leaf) == ("str", None)
            if same:
                continue
            expected = f"constant {node.value or None}"
        if got is None:
            place = f' for "{node.name}"' if node.name else ""
            raise DriverError(
                f"{manifest.label}: forward() returned {leaf!r}{place}, the program returns the "
                f"{expected}"
            )
        results.append(got)
    return results


def _constant(leaf: Any) -> tuple[str, str]:
    """The kind and the value of a constant, as the manifest has them."""
    return ("none", "") if leaf is None else (type(leaf).__name__, str(leaf))


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)
