"""The blocks that repeat, in the graph of a short program: see short_programs.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from aoti_driver.inductor import short_programs
from aoti_driver.program import aliasing

_NUMBERS = {
    (getattr(getattr(torch.ops.aten, name.split(".")[3]), name.split(".")[4]), place)
    for name, place in short_programs.NUMBERS
}


class UnfitError(Exception):
    """Blocks can't be a function. group: which of the program's; None for all."""

    def __init__(self, reason: str, group: int | None = None) -> None:
        super().__init__(reason)
        self.group = group


@dataclasses.dataclass(frozen=True)
class Region:
    """A call of a module.

    nodes: its operators, without arithmetic on sizes; of all but the first of a group, a node that
    stands for them. operands: the tensors that it reads. numbers: what may differ. results: the
    nodes that the rest of the program reads.
    """

    nodes: tuple[fx.Node, ...]
    operands: tuple[fx.Node, ...]
    numbers: tuple[int, ...]
    results: tuple[fx.Node, ...]


def find(module: fx.GraphModule) -> list[list[Region]]:
    """The regions of each group. Removes the marks from the module."""
    operators = getattr(torch.ops, short_programs.NAMESPACE)
    groups: dict[Any, list[Region]] = {}
    opened: tuple[fx.Node, list[fx.Node]] | None = None
    for node in [*module.graph.nodes]:
        if node.target is operators.begin.default:
            opened = (node, [])
        elif node.target is operators.end.default:
            assert opened is not None
            begin, nodes = opened
            groups[begin.args[0]] = [_first(begin, node, nodes)]
            module.graph.erase_node(node)
            module.graph.erase_node(begin)
            opened = None
        elif node.target in (operators.again.default, operators.again_many.default):
            arguments: Any = node.args
            group, operands, numbers = arguments
            results = [node]
            if node.target is operators.again_many.default:
                results = sorted(node.users, key=_result)
            if len(results) != len(groups[group][0].results):
                raise UnfitError("blocks return different numbers of tensors", group)
            nodes = list(dict.fromkeys([node, *results]))
            region = Region(tuple(nodes), tuple(operands), tuple(numbers), tuple(results))
            groups[group].append(region)
        elif opened is not None and node.op != "get_attr" and not is_size(node):
            opened[1].append(node)
    return [groups[group] for group in sorted(groups)]


def _result(node: fx.Node) -> int:
    place: Any = node.args[1]
    return int(place)


def _first(begin: fx.Node, end: fx.Node, nodes: Sequence[fx.Node]) -> Region:
    arguments: Any = (*begin.args, *end.args[1:])
    group, operands, numbers, results = arguments
    inside = {*nodes}
    given = [n for node in nodes for n in node.all_input_nodes if not is_size(n)]
    if not {*given} <= {*operands, *nodes}:
        raise UnfitError("it reads other tensors than in the file", group)
    read = [n for n in nodes if any(u not in inside and not is_size(u) for u in n.users)]
    # The end reads the results, so no pass makes one operator of a result and of what is behind it.
    if not {*results} <= inside or not {*read} <= {*results}:
        raise UnfitError("it returns other tensors than in the file", group)
    places: list[Any] = [node.args[i] for node in nodes for i in places_of_numbers(node)]
    if places != [*numbers]:
        raise UnfitError("it has other numbers than in the file", group)
    if not all(isinstance(n.meta.get("val"), torch.Tensor) for n in (*operands, *results)):
        raise UnfitError("it reads or returns something else than tensors", group)
    return Region(tuple(nodes), tuple(operands), tuple(places), tuple(results))


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


def kind(value: Any) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(map(kind, value))
    if not isinstance(value, torch.Tensor):
        return repr(value)
    sizes = (tuple(map(number, v)) for v in (value.shape, value.stride()))
    return (value.dtype, value.device, value.layout, *sizes)


def number(value: Any) -> object:
    return value.node.expr if isinstance(value, (torch.SymInt, torch.SymBool)) else value


def same_memory(module: fx.GraphModule, a: fx.Node, b: fx.Node) -> bool:
    """Whether two operands of a region may share memory."""
    return not memory(module, a).isdisjoint(memory(module, b))


def memory(module: fx.GraphModule, operand: fx.Node) -> set[object]:
    """What two operands have in common if they may share memory."""
    nodes = aliasing.memory_of(operand)
    stores = (stored(module, n).untyped_storage() for n in nodes if n.op == "get_attr")
    return {*nodes, *({store.data_ptr() for store in stores} - {0})}
