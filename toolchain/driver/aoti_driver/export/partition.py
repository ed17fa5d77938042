"""What the forward pass of training keeps for the backward pass, and what that computes again.

PyTorch's own partitioner chooses between the memory that a tensor takes and the time to compute it.
A program's inputs have sizes that are linear in one dim, so some tensors are kept in another form.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import sympy
import torch
from torch._functorch.partitioners import min_cut_rematerialization_partition

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import polynomials
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.export.joint import SAME, Joint, Node, parts_of
from aoti_driver.export.torch_sizes import from_sympy, to_sympy
from aoti_driver.program.weights_file import torch_dtype


@dataclasses.dataclass(frozen=True)
class Saved:
    """A tensor that is neither an input nor an output. shape: the one in which it is kept."""

    node: Node
    shape: tuple[SizeExpr, ...]


@dataclasses.dataclass(frozen=True)
class Kept:
    """What the backward pass takes, beside the gradients of the outputs.

    inputs, outputs: indices of those of the forward pass.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    saved: tuple[Saved, ...]


def partition(joint: Joint, manifest: ProgramManifest) -> tuple[Joint, Kept]:
    """The graph, in which PyTorch has replaced what occurred twice, and what of it is kept."""
    _, backward = min_cut_rematerialization_partition(
        joint.module, None, num_fwd_outputs=len(joint.outputs)
    )
    counts = len(joint.constants), len(joint.inputs), len(joint.outputs)
    joint = parts_of(joint.module, joint.symbols, *counts)
    nodes = {node.name: node for node in joint.module.graph.nodes}
    taken = [nodes[n.name] for n in backward.graph.nodes if n.op == "placeholder"]
    chosen = _Choice(joint, manifest)
    for node in taken:
        if node not in joint.gradients and not joint.is_size(node):
            chosen.keep(node)
    chosen.keep_sizes()
    return joint, chosen.kept()


def is_floating(dtype: str) -> bool:
    return torch_dtype(dtype).is_floating_point


def size_of_input(size: SizeExpr) -> bool:
    """Whether an input may have it: an integer times one dim plus an integer, or an integer."""
    try:
        scale, _, offset = polynomials.affine(size)
    except (DriverError, ValueError):
        return False
    return scale >= 0 and offset >= 0


class _Choice:
    """Collects what is kept."""

    def __init__(self, joint: Joint, manifest: ProgramManifest) -> None:
        self._joint = joint
        self._manifest = manifest
        self._inputs: set[int] = set()
        self._outputs: set[int] = set()
        self._saved: dict[Node, Saved] = {}
        self._returned = {node: i for i, node in reversed([*enumerate(joint.outputs)])}
        self._constant = self._constants()

    def kept(self) -> Kept:
        order = {node: i for i, node in enumerate(self._joint.module.graph.nodes)}
        saved = sorted(self._saved.values(), key=lambda one: order[one.node])
        return Kept(tuple(sorted(self._inputs)), tuple(sorted(self._outputs)), tuple(saved))

    def keep(self, node: Node) -> None:
        """Keeps a tensor: itself, what it is a view of, or what it is computed from."""
        if node not in self._returned:
            node = _base(node)
        if node in self._constant or node in self._saved or self._joint.is_size(node):
            return
        if node in self._joint.inputs:
            self._inputs.add(self._joint.inputs.index(node))
        elif self._output(node) is not None:
            self._outputs.add(self._returned[node])
        elif (shape := self._shape(node)) is not None:
            self._saved[node] = Saved(node, shape)
        elif _repeatable(node):
            for argument in node.all_input_nodes:
                self.keep(argument)
        else:
            raise DriverError(
                f"random numbers of {node.target} have a shape that can't be kept for the backward "
                "pass: each size must be a product of dims"
            )

    def keep_sizes(self) -> None:
        """Keeps inputs for the dims that nothing else has, and that the backward pass reads."""
        joint = self._joint
        kept = self.kept()
        given = [*joint.constants, *joint.gradients, *[one.node for one in kept.saved]]
        given += [joint.inputs[i] for i in kept.inputs] + [joint.outputs[i] for i in kept.outputs]
        needed = joint.needed(joint.results, given)
        numbers = [node.meta["val"] for node in needed if joint.is_size(node)]
        for result in joint.results:
            numbers += result.meta["val"].shape
        dims = {dim for number in numbers for dim in joint.symbols.size(number).dims}
        shapes = [self._manifest.inputs[i].shape for i in kept.inputs]
        shapes += [self._manifest.outputs[i].shape for i in kept.outputs]
        shapes += [one.shape for one in kept.saved]
        shapes += [o.shape for o in self._manifest.outputs if is_floating(o.dtype)]
        known = _dims(shapes)
        for i, item in enumerate(self._manifest.inputs):
            if (dims - known) & _dims([item.shape]):
                self._inputs.add(i)
                known |= _dims([item.shape])

    def _output(self, node: Node) -> int | None:
        """The output that the node is, if an input may have its sizes."""
        found = self._returned.get(node)
        if found is None or not all(map(size_of_input, self._manifest.outputs[found].shape)):
            return None
        return found

    def _shape(self, node: Node) -> tuple[SizeExpr, ...] | None:
        """The shape in which a tensor is kept; None for what can't be an input."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
            return None
        if str(value.dtype).removeprefix("torch.") not in DTYPES:
            return None
        shape: list[SizeExpr] = []
        for size in value.shape:
            parts = _parts(self._joint.symbols.size(size))
            if parts is None:
                return None
            shape += parts
        return tuple(shape)

    def _constants(self) -> set[Node]:
        """What depends on no input: the backward pass computes it of the weights."""
        found: set[Node] = set()
        varied = {*self._joint.inputs, *self._joint.gradients}
        for node in self._joint.module.graph.nodes:
            used = node.all_input_nodes
            if node not in varied and all(one in found for one in used) and _repeatable(node):
                found.add(node)
        return found


def _parts(size: SizeExpr) -> list[SizeExpr] | None:
    """Sizes with this product, each of which an input may have."""
    if size_of_input(size):
        return [size]
    if not size.dims:
        return None
    try:
        polynomials.polynomial(size)  # raises for other functions of the dims
        scale, factors = sympy.factor_list(to_sympy(size))
    except (DriverError, ValueError, sympy.PolynomialError):
        return None
    sizes = [from_sympy(factor) for factor, power in factors for _ in range(power)]
    sizes[-1] = from_sympy(sympy.expand(scale * to_sympy(sizes[-1])))
    return sizes if all(map(size_of_input, sizes)) else None


def _base(node: Node) -> Node:
    """What a tensor is a view of."""
    while node.op == "call_function" and (_is_view(node.target) or _is_part_of_view(node)):
        node = node.all_input_nodes[0]
    return node


def _is_part_of_view(node: Node) -> bool:
    """Whether it is one of several views, such as those of ``split``."""
    return node.target is operator.getitem and _is_view(node.all_input_nodes[0].target)


@functools.cache
def _is_view(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    returned = target._schema.returns
    return (len(returned) == 1 and returned[0].alias_info is not None) or target in SAME


def _repeatable(node: Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return True
    return torch.Tag.nondeterministic_seeded not in target.tags


def _dims(shapes: Iterable[Sequence[SizeExpr]]) -> set[str]:
    """The dims that follow from sizes: those that are alone in one."""
    sizes = [size for shape in shapes for size in shape]
    return {dim for size in sizes if size_of_input(size) for dim in size.dims}
