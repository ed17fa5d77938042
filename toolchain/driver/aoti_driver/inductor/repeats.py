"""Finds the parts of a program that repeat: modules such as ``blk.0``, ``blk.1``, ... that compute
the same.

Two calls of modules are the same computation if their operators are, in the same order, with the
same arguments, and all results have the same dtypes, sizes and strides, symbols included. What they
read from elsewhere (activations, weights, buffers) may be other tensors of the same kind, and a few
numbers that can't change a size may differ: the index of the layer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from aoti_driver.program import aliasing

# The arguments that may differ between the calls of one block: they are neither sizes nor dims.
_NUMBERS = {(torch.ops.aten.select.int, 2), (torch.ops.aten.full.default, 1)}
_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
# Fewer nodes are generated as quickly as a function for them, and Inductor fuses them with others.
LEAST_SAVED = 200


@dataclasses.dataclass(frozen=True)
class Region:
    """A call of a module.

    nodes: its operators, without arithmetic on sizes. operands: the tensors that it reads.
    numbers: what may differ. results: the nodes that the rest of the program reads.
    """

    nodes: tuple[fx.Node, ...]
    operands: tuple[fx.Node, ...]
    numbers: tuple[int, ...]
    results: tuple[fx.Node, ...]


def find(module: fx.GraphModule) -> list[list[Region]]:
    """Regions without a common node, in groups that compute the same; outer modules first."""
    groups = []
    taken: set[fx.Node] = set()
    for nodes_of_path in _by_depth(module.graph):
        alike: dict[object, list[Region]] = {}
        for nodes in nodes_of_path:
            if taken.isdisjoint(nodes) and (described := _describe(module, nodes)) is not None:
                key, region = described
                alike.setdefault(key, []).append(region)
        for regions in alike.values():
            if (len(regions) - 1) * len(regions[0].nodes) >= LEAST_SAVED:
                groups.append(regions)
                taken.update(node for region in regions for node in region.nodes)
    return groups


def places_of_numbers(node: fx.Node) -> list[int]:
    """The arguments of a node that may differ in another call of the block."""
    return [
        i
        for i, argument in enumerate(node.args)
        if (node.target, i) in _NUMBERS and type(argument) is int and argument >= 0
    ]


def is_size(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int))


def stored(module: fx.GraphModule, node: fx.Node) -> Any:
    """The parameter or buffer that a get_attr node reads."""
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def _by_depth(graph: fx.Graph) -> Iterator[Iterable[Sequence[fx.Node]]]:
    """The operators inside of each module whose name is a number; outer modules first."""
    depths: dict[int, dict[str, list[fx.Node]]] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output") or is_size(node):
            continue
        for path, _ in (node.meta.get("nn_module_stack") or {}).values():
            parts = path.split(".")
            if parts[-1].isdigit():
                depths.setdefault(len(parts), {}).setdefault(path, []).append(node)
    for depth in sorted(depths):
        yield depths[depth].values()


def _describe(module: fx.GraphModule, nodes: Sequence[fx.Node]) -> tuple[object, Region] | None:
    """What must be equal of two regions; None if this one can't be a function of its own."""
    inside = dict.fromkeys(nodes)
    if not _together(nodes, inside) or not all(map(_ordinary, nodes)):
        return None
    index = {node: i for i, node in enumerate(nodes)}
    operands: dict[fx.Node, int] = {}
    numbers: list[int] = []
    rows: list[object] = []

    def describe(value: object) -> object:
        if isinstance(value, fx.Node):
            if value in index:
                return ("result", index[value])
            if is_size(value):
                return ("size", number(value.meta["val"]))
            return ("operand", operands.setdefault(value, len(operands)))
        if isinstance(value, (list, tuple)):
            return (type(value).__name__, *map(describe, value))
        return (type(value).__name__, repr(value))

    for node in nodes:
        arguments: list[object] = []
        for i, argument in enumerate(node.args):
            if i in places_of_numbers(node):
                numbers.append(int(argument))  # type: ignore[arg-type]
                arguments.append("number")
            else:
                arguments.append(describe(argument))
        named = tuple((name, describe(value)) for name, value in sorted(node.kwargs.items()))
        rows.append((node.target, tuple(arguments), named, kind(node.meta.get("val"))))
    if not all(isinstance(n.meta.get("val"), torch.Tensor) for n in operands):
        return None
    kinds = tuple(
        (node.op == "get_attr", kind(node.meta["val"]), _is_buffer(module, node))
        for node in operands
    )
    results = tuple(
        node
        for node in nodes
        if any(user not in inside and not is_size(user) for user in node.users)
    )
    if not results or not all(isinstance(n.meta.get("val"), torch.Tensor) for n in results):
        return None
    region = Region(tuple(nodes), tuple(operands), tuple(numbers), results)
    return (tuple(rows), kinds, tuple(index[node] for node in results)), region


def _together(nodes: Sequence[fx.Node], inside: Mapping[fx.Node, None]) -> bool:
    """Whether no other operator is between them."""
    node, last = nodes[0], nodes[-1]
    while node is not last:
        if node not in inside and node.op != "get_attr" and not is_size(node):
            return False
        node = node.next
    return True


def _ordinary(node: fx.Node) -> bool:
    """Whether the node computes tensors from tensors, and nothing else."""
    if node.op != "call_function":
        return False
    if isinstance(node.target, torch._ops.OpOverload):
        if torch.Tag.nondeterministic_seeded in node.target.tags and not _no_dropout(node):
            return False
    elif getattr(node.target, "__name__", "") != "getitem":
        return False
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return all(isinstance(v, torch.Tensor) and not free_unbacked_symbols(v) for v in values)


def _no_dropout(node: fx.Node) -> bool:
    probability = node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)
    return node.target is _ATTENTION and isinstance(probability, float) and not probability


def kind(value: Any) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(kind, value))
    if not isinstance(value, torch.Tensor):
        return repr(value)
    sizes = (tuple(map(number, v)) for v in (value.shape, value.stride()))
    return (value.dtype, value.device, value.layout, *sizes)


def number(value: Any) -> object:
    return value.node.expr if isinstance(value, (torch.SymInt, torch.SymBool)) else value


def _is_buffer(module: fx.GraphModule, node: fx.Node) -> bool:
    return node.op == "get_attr" and not isinstance(stored(module, node), torch.nn.Parameter)


def same_memory(module: fx.GraphModule, a: fx.Node, b: fx.Node) -> bool:
    """Whether two operands of a region may share memory."""
    return not memory(module, a).isdisjoint(memory(module, b))


def memory(module: fx.GraphModule, operand: fx.Node) -> set[object]:
    """What two operands have in common if they may share memory."""
    nodes = aliasing.memory_of(operand)
    stores = (stored(module, n).untyped_storage() for n in nodes if n.op == "get_attr")
    return {*nodes, *({store.data_ptr() for store in stores} - {0})}
