"""Makes one operator of the calls of blocks that follow each other: see outline.py.

Inductor's time then doesn't grow with the number of calls: it lowers one operator with many
arguments, for which the generated code calls the blocks' functions in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator as python_operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from aoti_driver.inductor import block_parts, repeats
from aoti_driver.inductor.block_parts import Operator
from aoti_driver.inductor.outline import Block
from aoti_driver.inductor.repeats import Region


@dataclasses.dataclass(frozen=True)
class Made:
    """A result of a call of the same run."""

    call: int
    result: int


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a run. tensors: the run's arguments by place, or what earlier calls made."""

    block: Block
    tensors: tuple[int | Made, ...]
    numbers: tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """Calls that are one operator. given: its arguments, as fake tensors. results: what of the
    calls it returns.
    """

    operator: Operator
    given: tuple[torch.Tensor, ...]
    calls: tuple[Call, ...]
    results: tuple[Made, ...]

    def inputs(self) -> list[Any]:
        return [*self.given]


@contextlib.contextmanager
def merged(module: fx.GraphModule, blocks: Sequence[Block]) -> Iterator[list[Run]]:
    """Changes the module, in which the blocks are called; the operators exist inside of the
    context.
    """
    library = torch.library.Library(block_parts.NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
    by_operator = {block.operator.overload: block for block in blocks}
    runs: list[Run] = []
    try:
        for nodes in [*_sequences(module.graph, by_operator)]:
            run = _merge(module, nodes, by_operator, f"run_{len(runs)}", library)
            if run is not None:
                runs.append(run)
        if runs:
            module.graph.lint()
            module.recompile()
        yield runs
    finally:
        library._destroy()  # type: ignore[no-untyped-call]


def _sequences(graph: fx.Graph, blocks: Mapping[Any, Block]) -> Iterator[list[fx.Node]]:
    """Calls between which nothing else is computed."""
    calls: list[fx.Node] = []
    made: set[fx.Node] = set()
    for node in graph.nodes:
        if node.target in blocks:
            calls.append(node)
            made.add(node)
        elif node.target is python_operator.getitem and node.args[0] in made:
            made.add(node)
        elif node.op != "get_attr" and not (
            repeats.is_size(node) and made.isdisjoint(node.all_input_nodes)
        ):
            if len(calls) > 1:
                yield calls
            calls, made = [], set()


def _merge(
    module: fx.GraphModule,
    nodes: Sequence[fx.Node],
    blocks: Mapping[Any, Block],
    name: str,
    library: Any,
) -> Run | None:
    given: dict[fx.Node, int] = {}
    made: dict[fx.Node, Made] = {}
    written: set[int] = set()
    calls = []
    for i, node in enumerate(nodes):
        block = blocks[node.target]
        arguments: Any = node.args
        operands, numbers = block.operator.parts(arguments)
        tensors = [made.get(n) or given.setdefault(n, len(given)) for n in operands]
        calls.append(Call(block, tuple(tensors), tuple(numbers)))
        places = (tensors[i] for i in block.operator.written)
        written.update(place for place in places if isinstance(place, int))
        if block.results == 1:
            made[node] = Made(i, 0)
        else:
            results_of: Any = {user: user.args[1] for user in node.users}
            made |= {user: Made(i, result) for user, result in results_of.items()}
    inside = {*nodes}
    results = [node for node in made if any(user not in inside for user in node.users)]
    if not results or _shared(module, list(given), written):
        return None
    region = Region((), tuple(given), (), tuple(results))
    operator = block_parts.operator(name, library, region, sorted(written), 0)
    block_parts.call(module.graph, operator, list(given), (), nodes[-1], results)
    for node in reversed(module.graph.nodes):
        if node in made or node in inside:
            module.graph.erase_node(node)
    return Run(
        operator,
        tuple(node.meta["val"] for node in given),
        tuple(calls),
        tuple(made[node] for node in results),
    )


def _shared(module: fx.GraphModule, given: Sequence[fx.Node], written: set[int]) -> bool:
    """Whether a call writes to memory that is also another argument's."""
    owners: dict[object, set[int]] = {}
    for place, node in enumerate(given):
        for piece in repeats.memory(module, node):
            owners.setdefault(piece, set()).add(place)
    return any(len(places) > 1 and places & written for places in owners.values())
