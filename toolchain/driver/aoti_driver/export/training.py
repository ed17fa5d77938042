"""The two programs of a training step: a forward pass that returns what the backward pass needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import conditions, dims, polynomials
from aoti_driver.contract.backward_names import GRADIENT, INPUT, OUTPUT, SAVED
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.program_parts import Input
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.export import checks
from aoti_driver.export.joint import Node, trace, with_gradients
from aoti_driver.export.partition import is_floating, partition, size_of_input
from aoti_driver.export.training_part import TrainingPart, numbers, sizes_of
from aoti_driver.program.weights_file import torch_dtype

Tensors = Sequence[torch.Tensor]
Sizes = Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class TrainingProgram:
    """One of the programs. inputs, dims: as its manifest has them."""

    exported: ExportedProgram
    inputs: tuple[Input, ...]
    dims: Dims


class Training:
    """The programs of a training step with a program."""

    def __init__(self, label: str, manifest: ProgramManifest, ep: ExportedProgram) -> None:
        self._label = label
        self._manifest = manifest
        self._ep = ep
        for output in manifest.outputs:
            if is_floating(output.dtype):
                self._check_sizes(output.name, output.shape)
        self._joint, self._kept = partition(trace(label, manifest, ep), manifest)
        self._constants = {
            spec.target: ep.state_dict.get(spec.target, ep.constants.get(spec.target))
            for spec in ep.graph_signature.input_specs
            if spec.target is not None
        }
        self._differentiated = [o for o in manifest.outputs if is_floating(o.dtype)]

    def programs(self) -> tuple[TrainingProgram, TrainingProgram]:
        """The forward and the backward pass. Raises DriverError if they do not compute what PyTorch
        does.
        """
        every = _dims_of(self._manifest, [item.shape for item in self._manifest.inputs])
        sizes = self._sizes(every)
        forward = self._forward(sizes)
        values = self._samples(sizes)
        given = self._backward_arguments(values, forward(*values), sizes)
        inputs = self._backward_inputs()
        of_backward = _dims_of(self._manifest, [item.shape for item in inputs])
        backward = self._backward(inputs)
        first = self._exported(forward, self._manifest.inputs, values, every)
        second = self._exported(backward, inputs, given, of_backward)
        for others in ({}, *checks.small_ends(every.ranges)):
            tried = {**sizes, **others}
            if conditions.all_hold(self._manifest.guards, tried):
                # torch.export's guards hold from 2 on.
                self._compare(
                    first.module(check_guards=False), second.module(check_guards=False), tried
                )
        return (
            TrainingProgram(first, self._manifest.inputs, every),
            TrainingProgram(second, inputs, of_backward),
        )

    def _check_sizes(self, name: str, shape: Sequence[SizeExpr]) -> None:
        """The gradient of an output has its sizes, and is an input."""
        for size in shape:
            if not size_of_input(size):
                raise DriverError(
                    f'{self._label}: output "{name}" has the size {size}; a backward pass '
                    "needs outputs whose sizes are an integer times one dim plus an integer."
                )

    def _sizes(self, every: Dims) -> dict[str, int]:
        """Sizes that the program was made for."""
        declared = [size for item in self._manifest.inputs for size in item.shape]
        sizes = dims.sample_sizes(every, declared)
        found = conditions.satisfied(self._manifest.guards, every.ranges, sizes)
        return sizes if found is None else dict(found)

    def _forward(self, sizes: Sizes) -> TrainingPart:
        """The outputs, and what is kept of the rest."""
        joint, saved = self._joint, self._kept.saved
        shapes = [item.shape for item in self._manifest.inputs]
        names = [f"{OUTPUT}{o.name}" for o in self._manifest.outputs]
        names += [f"{SAVED}{i}" for i in range(len(saved))]
        wanted = [*joint.outputs, *[one.node for one in saved]]
        dense = [self._is_dense(one.node, sizes) for one in saved]

        def compute(constants: Mapping[Node, Any], values: Tensors) -> list[torch.Tensor]:
            found = sizes_of(shapes, values)
            results = joint.run(wanted, {**constants, **dict(zip(joint.inputs, values))}, found)
            outputs = results[: len(joint.outputs)]
            for one, is_dense, value in zip(saved, dense, results[len(outputs) :]):
                whole = value if is_dense else value.contiguous()
                same = len(one.shape) == value.dim()
                outputs.append(whole if same else whole.reshape(numbers(one.shape, found)))
            return outputs

        return TrainingPart(joint, self._constants, wanted, joint.inputs, names, compute)

    def _is_dense(self, node: Node, sizes: Sizes) -> bool:
        """Whether each element of a tensor is once in its memory, as compiled programs take it."""
        value, size = node.meta["val"], self._joint.symbols.size
        expected = 1
        pairs = [(size(a).evaluate(sizes), size(b)) for a, b in zip(value.stride(), value.shape)]
        for stride, extent in sorted(pairs, key=lambda pair: pair[0]):
            if stride != expected:
                return False
            expected *= extent.evaluate(sizes)
        return True

    def _backward_inputs(self) -> tuple[Input, ...]:
        manifest, kept = self._manifest, self._kept
        inputs = []
        for i in kept.inputs:
            name = f"{INPUT}{manifest.inputs[i].name}"
            inputs.append(dataclasses.replace(manifest.inputs[i], name=name, path=name))
        for o in [manifest.outputs[i] for i in kept.outputs]:
            inputs.append(_tensor(f"{OUTPUT}{o.name}", o.dtype, o.shape))
        for i, one in enumerate(kept.saved):
            dtype = str(one.node.meta["val"].dtype).removeprefix("torch.")
            inputs.append(_tensor(f"{SAVED}{i}", dtype, one.shape))
        for o in self._differentiated:
            inputs.append(_tensor(f"{GRADIENT}{o.name}", o.dtype, o.shape))
        return tuple(inputs)

    def _backward(self, inputs: Sequence[Input]) -> TrainingPart:
        joint, kept = self._joint, self._kept
        shapes = [item.shape for item in inputs]
        nodes = [joint.inputs[i] for i in kept.inputs]
        nodes += [joint.outputs[i] for i in kept.outputs]
        first = len(nodes)
        nodes += [one.node for one in kept.saved] + [*joint.gradients]
        names = [f"{GRADIENT}{i.name}" for i in self._manifest.inputs if is_floating(i.dtype)]

        def compute(constants: Mapping[Node, Any], values: Tensors) -> list[torch.Tensor]:
            sizes = sizes_of(shapes, values)
            given = dict(zip(nodes, values, strict=True))
            for one, value in zip(kept.saved, values[first:]):
                shape = [joint.symbols.size(size) for size in one.node.meta["val"].shape]
                if len(shape) != value.dim():
                    given[one.node] = value.reshape(numbers(shape, sizes))
            return joint.run(joint.results, {**constants, **given}, sizes)

        return TrainingPart(joint, self._constants, joint.results, nodes, names, compute)

    def _exported(
        self, module: TrainingPart, inputs: Sequence[Input], values: Tensors, known: Dims
    ) -> ExportedProgram:
        # torch reads names of dims as sympy does, where some have another meaning.
        torch_dims = {
            name: Dim(f"{name}_dim", min=low, max=high)
            for name, (low, high) in known.ranges.items()
        }
        shapes = tuple(
            {d: _torch_dim(size, torch_dims) for d, size in enumerate(item.shape) if size.dims}
            for item in inputs
        )
        try:
            return torch.export.export(module, tuple(values), dynamic_shapes=(shapes,))
        except Exception as e:
            raise DriverError(
                f"{self._label}: the training step of {self._manifest.label} can't be exported: {e}"
            ) from e

    def _samples(self, sizes: Sizes) -> list[torch.Tensor]:
        """Inputs of the forward pass; integers are the smallest that a call may pass."""
        generator = torch.Generator().manual_seed(0)
        samples = []
        for item in self._manifest.inputs:
            shape = [int(size.evaluate(sizes)) for size in item.shape]
            stride = [int(size.evaluate(sizes)) for size in item.stride]
            dtype = torch_dtype(item.dtype)
            if dtype.is_floating_point:
                value = torch.rand(shape, generator=generator).to(dtype)
            else:
                value = torch.full(shape, int(item.values[0]) if item.values else 0).to(dtype)
            samples.append(torch.empty_strided(shape, stride, dtype=dtype).copy_(value))
        return samples

    def _gradients(self, sizes: Sizes) -> list[torch.Tensor]:
        """Samples of the gradients of the outputs."""
        generator = torch.Generator().manual_seed(1)
        return [
            torch.rand([int(size.evaluate(sizes)) for size in o.shape], generator=generator).to(
                torch_dtype(o.dtype)
            )
            for o in self._differentiated
        ]

    def _backward_arguments(
        self, values: Tensors, results: Mapping[str, torch.Tensor], sizes: Sizes
    ) -> list[torch.Tensor]:
        returned = [result.detach() for result in results.values()]
        given = [values[i] for i in self._kept.inputs]
        given += [returned[i] for i in self._kept.outputs]
        given += returned[len(self._manifest.outputs) :]
        return given + self._gradients(sizes)

    def _compare(self, forward: Any, backward: Any, sizes: Sizes) -> None:
        values = self._samples(sizes)
        constants = list(self._constants.values())
        gradients = self._gradients(sizes)
        torch.manual_seed(0)
        expected, found = with_gradients(
            self._ep, [*constants, *values, *gradients], len(constants), len(values)
        )
        torch.manual_seed(0)
        results = forward(*values)
        actual = backward(*self._backward_arguments(values, results, sizes))
        pairs = [*zip(results.items(), expected), *zip(actual.items(), found)]
        for (name, value), other in pairs:
            try:
                torch.testing.assert_close(value, other, equal_nan=True, check_stride=False)
            except AssertionError as e:
                text = ", ".join(f"{n} = {size}" for n, size in sizes.items())
                raise DriverError(
                    f"{self._label}: the training step of {self._manifest.label} is wrong for "
                    f'{text}, in "{name}": {e}\n  torch.export takes sizes to be at least 2. '
                    "Declare a range from 2, if that is where it is wrong."
                ) from None


def _tensor(name: str, dtype: str, shape: Sequence[SizeExpr]) -> Input:
    return Input(name, name, dtype, tuple(shape), stride=())


def _dims_of(manifest: ProgramManifest, shapes: Sequence[Sequence[SizeExpr]]) -> Dims:
    """The dims that occur in shapes, and those that are derived from them."""
    used = {dim for shape in shapes for size in shape for dim in size.dims}
    known = [
        dim
        for dim in manifest.dims
        if (dim.name in used if dim.alias is None else set(dim.alias.dims) <= used)
    ]
    free = {dim.name: (dim.min, dim.max) for dim in known if dim.alias is None}
    derived = {dim.name: dim.alias for dim in known if dim.alias is not None}
    return Dims(free, {}, derived, tuple(dim.name for dim in known))


def _torch_dim(size: SizeExpr, torch_dims: Mapping[str, Any]) -> Any:
    scale, dim, offset = polynomials.affine(size)
    assert dim is not None
    scaled = scale * torch_dims[dim] if scale != 1 else torch_dims[dim]
    return scaled + offset if offset else scaled
