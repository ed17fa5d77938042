"""Makes a function of each part of a program that repeats, and calls of it where it was.

Inductor generates the function once, as a program of its own, and its calls as those of an operator
that may write to its arguments. So its time, the code and the kernels don't grow with the number of
repeated blocks.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch import fx

from aoti_driver.inductor import block_parts, repeats
from aoti_driver.inductor.block_parts import Operator
from aoti_driver.inductor.repeats import Region, UnfitError


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """A function for equal regions.

    name: in C++. module: the function, of tensors and then of numbers. weights: the places of
    arguments that are parameters or buffers. numbers: symbols of the last
    arguments, and their places among a region's numbers.
    """

    name: str
    module: fx.GraphModule
    operator: Operator
    weights: tuple[int, ...]
    numbers: tuple[sympy.Symbol, ...]
    places: tuple[int, ...]
    results: int
    shape_env: Any

    def inputs(self) -> list[Any]:
        return [node.meta["val"] for node in self.module.graph.find_nodes(op="placeholder")]

    def check(self, constants: Sequence[object]) -> None:
        """After code was generated for the function: it must be right for all regions."""
        if constants:
            raise UnfitError("Inductor made a constant for it")
        for symbol in self.numbers:
            if symbol in self.shape_env.replacements or any(
                symbol in guard.expr.free_symbols for guard in self.shape_env.guards
            ):
                raise UnfitError("it is right for one of its numbers only")


@contextlib.contextmanager
def outlined(module: fx.GraphModule) -> Iterator[list[Block]]:
    """Changes the module; the operators exist inside of the context.

    UnfitError if something fails there: the program may compile without them.
    """
    library = torch.library.Library(block_parts.NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
    blocks: dict[Block, list[Region]] = {}
    try:
        with written_arguments_named(module.graph) as keep:
            for group, regions in enumerate(repeats.find(module)):
                blocks[_block(module, regions, group, library)] = regions
            if blocks:
                keep()
        results: dict[fx.Node, fx.Node] = {}
        for block, regions in blocks.items():
            for region in regions:
                _replace(module.graph, region, block, results)
        module.graph.lint()
        module.recompile()
        yield list(blocks)
    except UnfitError:
        raise
    except Exception as e:  # torch raises many types
        if blocks:
            raise UnfitError(f"{type(e).__name__}: {e}") from e
        raise
    finally:
        library._destroy()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def written_arguments_named(graph: fx.Graph) -> Iterator[Callable[[], None]]:
    """What an operator that writes to its argument returns is the argument.

    Yields what makes this last; otherwise the graph is as it was afterwards.
    """
    before: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        schema = node.target._schema
        if len(schema.returns) != 1 or not schema.arguments or not node.args:
            continue
        returned, first = schema.returns[0].alias_info, schema.arguments[0].alias_info
        if returned is None or first is None or not returned.is_write or not first.is_write:
            continue
        if isinstance(node.args[0], fx.Node) and returned.before_set == first.before_set:
            for user in node.users:
                before.setdefault(user, (user.args, user.kwargs))
            node.replace_all_uses_with(node.args[0])
    try:
        yield before.clear
    finally:
        for node, (args, kwargs) in before.items():
            node.args, node.kwargs = args, kwargs


def _block(module: fx.GraphModule, regions: Sequence[Region], group: int, library: Any) -> Block:
    try:
        return _function(module, regions, f"block_{group}", library)
    except Exception as e:  # torch raises many types
        raise UnfitError(f"{type(e).__name__}: {e}", group) from e


def _function(module: fx.GraphModule, regions: Sequence[Region], name: str, library: Any) -> Block:
    first = regions[0]
    fake_mode = first.operands[0].meta["val"].fake_mode
    places, symbols = block_parts.numbers(regions, fake_mode.shape_env)
    function, written = block_parts.function(first, places, symbols, fake_mode)
    for region in regions:
        for i in written:
            for j, operand in enumerate(region.operands):
                if i != j and repeats.same_memory(module, region.operands[i], operand):
                    raise UnfitError("it writes to memory that it also reads")
    operator = block_parts.operator(name, library, first, written, len(symbols))
    weights = (i for i, node in enumerate(first.operands) if node.op == "get_attr")
    return Block(
        name,
        function,
        operator,
        weights=tuple(weights),
        numbers=tuple(symbols),
        places=tuple(dict.fromkeys(places.values())),
        results=len(first.results),
        shape_env=fake_mode.shape_env,
    )


def _replace(
    graph: fx.Graph, region: Region, block: Block, replaced: dict[fx.Node, fx.Node]
) -> None:
    """Calls the block in place of the region. replaced: the results of all regions so far."""
    sizes = block_parts.known_sizes(region)
    operands = [replaced.get(operand, operand) for operand in region.operands]
    with graph.inserting_before(region.nodes[0]):
        for node in region.nodes:
            for user in [user for user in node.users if repeats.is_size(user)]:
                i, d = sizes[repeats.number(user.meta["val"])]
                size = graph.call_function(block_parts.SIZE, (operands[i], d))
                size.meta["val"] = user.meta["val"]
                user.replace_all_uses_with(size)
                graph.erase_node(user)
    numbers = [region.numbers[place] for place in block.places]
    last = region.nodes[-1]
    results = block_parts.call(graph, block.operator, operands, numbers, last, region.results)
    replaced.update(zip(region.results, results, strict=True))
    for node in reversed(region.nodes):
        graph.erase_node(node)
