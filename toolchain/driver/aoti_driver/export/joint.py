"""The graph of a program's outputs and of its gradients, as PyTorch's autograd computes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.size_expr import Unknown
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export import describe
from aoti_driver.export.custom_operators import has_kernel
from aoti_driver.export.torch_sizes import expression_of, symbol
from aoti_driver.program import operators, signature
from aoti_driver.program.nodes import nodes_of

Node = torch.fx.Node
Tensors = Sequence[torch.Tensor]

_FORMULAS = ("Autograd", "AutogradCPU")

# They change the reference to a tensor alone.
SAME = (torch.ops.aten.detach.default, torch.ops.aten.alias.default)


@dataclasses.dataclass(frozen=True)
class Joint:
    """The graph, from constants, inputs and the gradients of outputs.

    outputs: those of the program. results: the gradients of its floating-point inputs.
    """

    module: torch.fx.GraphModule
    symbols: describe.Symbols
    constants: tuple[Node, ...]
    inputs: tuple[Node, ...]
    gradients: tuple[Node, ...]
    outputs: tuple[Node, ...]
    results: tuple[Node, ...]

    def is_size(self, node: Node) -> bool:
        """Whether it is a number that follows from the dims."""
        value = node.meta.get("val")
        return isinstance(value, torch.SymInt) and self.symbols.size(value) != Unknown()

    def needed(self, wanted: Sequence[Node], given: Sequence[Node]) -> dict[Node, None]:
        """What is computed of ``wanted`` where ``given`` and the sizes are known; with both."""
        found: dict[Node, None] = {}
        waiting = list(wanted)
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found[node] = None
            if node not in given and not self.is_size(node):
                waiting.extend(node.all_input_nodes)
        return found

    def run(
        self, wanted: Sequence[Node], given: Mapping[Node, Any], sizes: Mapping[str, Any]
    ) -> list[Any]:
        """The values of nodes. sizes: those of the dims."""
        needed = self.needed(wanted, list(given))
        values = dict(given)
        for node in self.module.graph.nodes:
            if node not in needed or node in values:
                continue
            if self.is_size(node):
                values[node] = self._size(node, sizes)
            elif node.op == "get_attr":
                values[node] = getattr(self.module, node.target)
            else:
                args, kwargs = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
                values[node] = node.target(*args, **kwargs)
        return [values[node] for node in wanted]

    def _size(self, node: Node, sizes: Mapping[str, Any]) -> Any:
        """The size, which may be symbolic in another trace."""
        expression = expression_of(node.meta["val"]).subs(dict(self.symbols.expressions))
        known = {symbol(name): size for name, size in sizes.items()}
        return sympy_interp(PythonReferenceAnalysis, known, sympy.expand(expression))


def trace(label: str, manifest: ProgramManifest, ep: ExportedProgram) -> Joint:
    """Traces with the program's own symbolic sizes."""
    specs = [(i.path, TensorSpec(i.dtype, i.shape, i.values)) for i in manifest.inputs]
    symbols = describe.match_symbols(ep, specs, label)
    values: dict[str, Any] = signature.placeholders(ep)
    inputs = signature.tensor_inputs(ep)
    constants = [name for name in values if name not in inputs]
    results = [node.meta["val"] for node in _output_nodes(ep)]
    _require_formulas(label, manifest, ep)

    def joint(*flat: torch.Tensor) -> Any:
        return with_gradients(ep, flat, len(constants), len(inputs))

    tensors: list[Any] = [v for v in values.values() if isinstance(v, torch.Tensor)]
    with tensors[0].fake_mode:
        samples = [_like(values[name]) for name in [*constants, *inputs]]
        samples += [torch.empty(r.shape, dtype=r.dtype) for r in results if is_floating(r)]
        try:
            module = make_fx(joint)(*samples)
        except Exception as e:
            raise DriverError(f"{label}: PyTorch can't differentiate {manifest.label}: {e}") from e
    _name_placeholders(module, len(constants) + len(inputs))
    module.graph.eliminate_dead_code()
    module.recompile()
    return parts_of(module, symbols, len(constants), len(inputs), len(results))


def _require_formulas(label: str, manifest: ProgramManifest, ep: ExportedProgram) -> None:
    """Without a formula, autograd takes the results of a program's own operator for constants."""
    for node in nodes_of(ep):
        op: Any = node.target
        if not operators.is_declared(op) or not any(
            map(is_floating, tree_leaves(node.meta["val"]))
        ):
            continue
        if not any(has_kernel(op, key) for key in _FORMULAS):
            name = op._schema.name
            raise DriverError(
                f"{label}: differentiable = True, but {manifest.label} calls {name}, which has no "
                f'gradient formula. Call torch.library.register_autograd("{name}", ...) in a file '
                "of its target's `python`."
            )


def parts_of(
    module: torch.fx.GraphModule,
    symbols: describe.Symbols,
    constants: int,
    inputs: int,
    outputs: int,
) -> Joint:
    """Finds the parts of a graph by their numbers."""
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    returned = tree_leaves(module.graph.output_node().args[0])
    return Joint(
        module,
        symbols,
        tuple(given[:constants]),
        tuple(given[constants : constants + inputs]),
        tuple(given[constants + inputs :]),
        tuple(map(_itself, returned[:outputs])),
        tuple(returned[outputs:]),
    )


def with_gradients(
    ep: ExportedProgram, flat: Tensors, constants: int, inputs: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The program's outputs, and PyTorch's gradients of its floating-point inputs.

    flat: constants, inputs, and gradients of floating-point outputs.
    """
    with torch.enable_grad():
        fixed = [tensor.detach() for tensor in flat[:constants]]
        given = [tensor.detach() for tensor in flat[constants : constants + inputs]]
        varied = [t.requires_grad_() for t in given if is_floating(t)]
        returned = torch.fx.Interpreter(ep.graph_module).run(*fixed, *given)
        nodes = ep.graph.output_node().args[0]
        assert isinstance(nodes, (list, tuple))
        values = dict(zip(nodes, returned))
        outputs = [values[node] for node in _output_nodes(ep)]
        floating = [output for output in outputs if is_floating(output)]
        pairs = zip(floating, flat[constants + inputs :])
        kept = [(result, gradient) for result, gradient in pairs if result.requires_grad]
        if not kept:
            raise DriverError("no output depends on a floating-point input")
        found = torch.autograd.grad(
            [r for r, _ in kept], varied, [g for _, g in kept], allow_unused=True
        )
    gradients = [
        torch.zeros(v.shape, dtype=v.dtype) if g is None else g for v, g in zip(varied, found)
    ]
    return [output.detach() for output in outputs], gradients


def is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


def _output_nodes(ep: ExportedProgram) -> list[Node]:
    """The nodes of what the program returns, in order."""
    names = {node.name: node for node in ep.graph.nodes}
    return [
        names[spec.arg.name]
        for spec in ep.graph_signature.output_specs
        if spec.kind == OutputKind.USER_OUTPUT and isinstance(spec.arg, TensorArgument)
    ]


def _name_placeholders(module: torch.fx.GraphModule, primals: int) -> None:
    """PyTorch's partitioner tells inputs and gradients apart by their names."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for i, node in enumerate(placeholders):
        name = f"primals_{i}" if i < primals else f"tangents_{i - primals}"
        node.target = node.name = name


def _itself(node: Node) -> Node:
    """The tensor that an output shares with autograd."""
    while node.target in SAME:
        node = node.all_input_nodes[0]
    return node


def _like(value: Any) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
