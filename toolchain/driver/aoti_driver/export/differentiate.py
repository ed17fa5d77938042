"""``differentiate``: the program of a backward pass, from that of a forward pass.

It takes the inputs of the forward pass and the gradients of its floating-point outputs, and returns
the gradients of its floating-point inputs. What the backward pass needs of the forward pass, it
computes again, in the same kernels where Inductor fuses them: nothing is kept but the inputs.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.fx.experimental.proxy_tensor import make_fx

from aoti_driver.base import files, quiet
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import conditions, dims, manifest_file, polynomials
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.program_parts import Input
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export import checks, describe, guards
from aoti_driver.program import graph_file, signature, weights_file
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import torch_dtype

Tensors = Sequence[torch.Tensor]


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request: the label and the name of the new program."""

    label: str
    name: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True)
    for flag in ("graph", "weights", "manifest"):
        parser.add_argument(f"--{flag}", required=True)
    for out in ("graph", "weights", "manifest", "locations"):
        parser.add_argument(f"--out_{out}", required=True)


def run(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    spec = read_spec(args.spec, _Spec)
    manifest = read_manifest(args.manifest, ProgramManifest)
    check(spec.label, manifest)
    with quiet.without_warnings():
        ep = load_program(args.graph, manifest, weights_file.read_weights(args.weights))
        backward = _Backward(spec.label, manifest, ep)
        exported = backward.exported()
    targets = [args.out_graph, args.out_weights, args.out_manifest, args.out_locations]
    with files.outputs(*targets) as (graph, weights, out_manifest, locations):
        locations.write_text("{}\n", encoding="utf-8")
        graph_file.save_graph(exported, graph)
        weights_file.write_weights(weights, graph_file.stored_tensors(exported))
        inputs = backward.inputs
        specs = [(i.path, TensorSpec(i.dtype, i.shape, i.values)) for i in inputs]
        symbols = describe.match_symbols(exported, specs, spec.label)
        ranges = backward.dims.ranges
        from_two = {name: (max(low, 2), max(high, 2)) for name, (low, high) in ranges.items()}
        found = guards.of_program(exported, symbols.expressions, from_two, spec.label)
        document = describe.make_manifest(
            exported,
            graph,
            label=spec.label,
            name=spec.name,
            strict=False,
            dims=backward.dims,
            inputs=inputs,
            symbols=symbols,
            guards=list(dict.fromkeys([*manifest.guards, *found])),
        )
        out_manifest.write_text(manifest_file.to_json(document), encoding="utf-8")


def check(label: str, manifest: ProgramManifest) -> None:
    """Refuses programs that have no backward pass of tensors."""
    where = f"{label}: differentiable = True, but {manifest.label}"
    for item in manifest.inputs:
        if item.mutated:
            raise DriverError(
                f'{where} writes to its input "{item.name}". Return the new value as an output.'
            )
        if item.value is not None or item.number is not None:
            raise DriverError(
                f'{where} takes the number "{item.name}". Make it a constant of the model.'
            )
    for constant in manifest.constants:
        if constant.mutated:
            raise DriverError(
                f'{where} writes to its buffer "{constant.name}". Make the buffer an argument.'
            )
    for items, what in ((manifest.inputs, "input"), (manifest.outputs, "output")):
        if not any(torch_dtype(item.dtype).is_floating_point for item in items):
            raise DriverError(f"{where} has no {what} of a floating-point dtype.")


class _Program(torch.nn.Module):
    """The traced backward pass, with the tensors of the forward pass by their names."""

    def __init__(
        self, graph: torch.fx.GraphModule, tensors: Mapping[str, torch.Tensor], names: Sequence[str]
    ) -> None:
        super().__init__()
        self._graph = graph
        self._names = names
        self._paths = list(tensors)
        for path, tensor in tensors.items():
            *folders, last = path.split(".")
            place: Any = self
            for folder in folders:
                if not hasattr(place, folder):
                    place.add_module(folder, torch.nn.Module())
                place = getattr(place, folder)
            if isinstance(tensor, torch.nn.Parameter):
                place.register_parameter(last, tensor)
            else:
                place.register_buffer(last, tensor)

    def forward(self, *values: torch.Tensor) -> dict[str, torch.Tensor]:
        tensors = []
        for path in self._paths:
            place: Any = self
            for part in path.split("."):
                place = getattr(place, part)
            tensors.append(place)
        return dict(zip(self._names, self._graph(*tensors, *values)))


class _Backward:
    """The backward pass of a program. inputs, dims: as its manifest has them."""

    def __init__(self, label: str, manifest: ProgramManifest, ep: ExportedProgram) -> None:
        self._label = label
        self._manifest = manifest
        self._ep = ep
        free = {dim.name: (dim.min, dim.max) for dim in manifest.dims if dim.alias is None}
        derived = {dim.name: dim.alias for dim in manifest.dims if dim.alias is not None}
        self.dims = Dims(free, {}, derived, tuple(dim.name for dim in manifest.dims))
        self._gradients = [
            Input(f"grad_{o.name}", f"grad_{o.name}", o.dtype, self._linear(o), stride=())
            for o in manifest.outputs
            if torch_dtype(o.dtype).is_floating_point
        ]
        self.inputs = [*manifest.inputs, *self._gradients]
        self._constants = {
            spec.target: ep.state_dict.get(spec.target, ep.constants.get(spec.target))
            for spec in ep.graph_signature.input_specs
            if spec.target is not None
        }

    def _linear(self, output: Any) -> tuple[SizeExpr, ...]:
        """The sizes of an output, which become those of an input."""
        for size in output.shape:
            try:
                polynomials.affine(size)
            except (DriverError, ValueError):
                raise DriverError(
                    f'{self._label}: output "{output.name}" has the size {size}; a backward pass '
                    "needs outputs whose sizes are an integer times one dim plus an integer."
                ) from None
        return tuple(output.shape)

    def exported(self) -> ExportedProgram:
        """Raises DriverError if it does not compute what PyTorch's own backward pass does."""
        module = self._traced()
        sizes = self._sizes()
        # torch reads names of dims as sympy does, where some have another meaning.
        torch_dims = {
            name: Dim(f"{name}_dim", min=low, max=high)
            for name, (low, high) in self.dims.ranges.items()
        }
        shapes = tuple(
            {d: _torch_dim(size, torch_dims) for d, size in enumerate(item.shape) if size.dims}
            for item in self.inputs
        )
        try:
            exported = torch.export.export(
                module, tuple(self._sample(sizes)), dynamic_shapes=(shapes,)
            )
        except Exception as e:
            raise DriverError(f"{self._label}: the backward pass can't be exported: {e}") from e
        for others in ({}, *checks.small_ends(self.dims.ranges)):
            tried = {**sizes, **others}
            if conditions.all_hold(self._manifest.guards, tried):
                self._compare(exported.module(), tried)
        return exported

    def _sizes(self) -> dict[str, int]:
        """Sizes that the program was made for."""
        declared = [size for item in self.inputs for size in item.shape]
        sizes = dims.sample_sizes(self.dims, declared)
        found = conditions.satisfied(self._manifest.guards, self.dims.ranges, sizes)
        return sizes if found is None else dict(found)

    def _traced(self) -> _Program:
        """Traced with the program's own symbolic sizes."""
        values: dict[str, Any] = signature.placeholders(self._ep)
        inputs = signature.tensor_inputs(self._ep)
        constants = [n for n in values if n not in inputs]
        tensors: list[Any] = [v for v in values.values() if isinstance(v, torch.Tensor)]
        mode = tensors[0].fake_mode

        def backward(*flat: torch.Tensor) -> list[torch.Tensor]:
            return self._gradient(flat, len(constants), len(inputs))

        results = [node.meta["val"] for node in self._results()]
        with mode:
            samples = [_like(values[name]) for name in [*constants, *inputs]]
            samples += [torch.empty(r.shape, dtype=r.dtype) for r in results]
            try:
                graph = make_fx(backward)(*samples)
            except Exception as e:
                raise DriverError(
                    f"{self._label}: PyTorch can't differentiate {self._manifest.label}: {e}"
                ) from e
        graph.graph.eliminate_dead_code()
        graph.recompile()
        names = [f"grad_{item.name}" for item in self._manifest.inputs if _floating(item.dtype)]
        return _Program(graph, self._constants, names)

    def _results(self) -> list[torch.fx.Node]:
        """The nodes of floating-point outputs."""
        specs = self._ep.graph_signature.output_specs
        names = {s.arg.name for s in specs if isinstance(s.arg, TensorArgument)}
        nodes = self._ep.graph.output_node().args[0]
        assert isinstance(nodes, (list, tuple))
        return [
            node
            for node in nodes
            if isinstance(node, torch.fx.Node)
            and node.name in names
            and node.meta["val"].dtype.is_floating_point
        ]

    def _gradient(self, flat: Tensors, constants: int, inputs: int) -> list[torch.Tensor]:
        """PyTorch's gradients. flat: constants, inputs, and gradients of outputs."""
        with torch.enable_grad():
            fixed = [tensor.detach() for tensor in flat[:constants]]
            given = [tensor.detach() for tensor in flat[constants : constants + inputs]]
            varied = [t.requires_grad_() for t in given if t.dtype.is_floating_point]
            results = torch.fx.Interpreter(self._ep.graph_module).run(*fixed, *given)
            kept = [
                (result, gradient)
                for result, gradient in zip(
                    [r for r in results if _is_floating(r)], flat[constants + inputs :]
                )
                if result.requires_grad
            ]
            if not kept:
                raise DriverError("no output depends on a floating-point input")
            found = torch.autograd.grad(
                [r for r, _ in kept], varied, [g for _, g in kept], allow_unused=True
            )
        return [torch.zeros_like(v) if g is None else g for v, g in zip(varied, found)]

    def _sample(self, sizes: Mapping[str, int]) -> list[torch.Tensor]:
        """Inputs of the backward pass; integers are the smallest that a call may pass."""
        generator = torch.Generator().manual_seed(0)
        samples = []
        for item in self.inputs:
            shape = [int(size.evaluate(sizes)) for size in item.shape]
            dtype = torch_dtype(item.dtype)
            if dtype.is_floating_point:
                samples.append(torch.rand(shape, generator=generator).to(dtype))
            else:
                samples.append(
                    torch.full(shape, int(item.values[0]) if item.values else 0).to(dtype)
                )
        return samples

    def _compare(self, module: Any, sizes: Mapping[str, int]) -> None:
        samples = self._sample(sizes)
        constants = list(self._constants.values())
        expected = self._gradient(
            [*constants, *samples], len(constants), len(self._manifest.inputs)
        )
        actual = module(*samples)
        for (name, gradient), other in zip(actual.items(), expected):
            try:
                torch.testing.assert_close(gradient, other, equal_nan=True)
            except AssertionError as e:
                text = ", ".join(f"{n} = {size}" for n, size in sizes.items())
                raise DriverError(
                    f"{self._label}: the backward pass of {self._manifest.label} is wrong for "
                    f'{text}, in "{name}": {e}\n  torch.export takes sizes to be at least 2. '
                    "Declare a range from 2, if that is where it is wrong."
                ) from None


def _floating(dtype: str) -> bool:
    return torch_dtype(dtype).is_floating_point


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def _like(value: Any) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _torch_dim(size: SizeExpr, torch_dims: Mapping[str, Any]) -> Any:
    scale, dim, offset = polynomials.affine(size)
    assert dim is not None
    scaled = scale * torch_dims[dim] if scale != 1 else torch_dims[dim]
    return scaled + offset if offset else scaled
