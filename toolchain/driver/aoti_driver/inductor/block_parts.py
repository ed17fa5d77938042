"""The parts of a function for a block that repeats: see outline.py."""

from __future__ import annotations

import dataclasses
import operator as python_operator
from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, free_symbols
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from aoti_driver.inductor import repeats
from aoti_driver.inductor.repeats import Region, UnfitError

NAMESPACE = "aoti_blocks"
SIZE = torch.ops.aten.sym_size.int
_ORIGIN = ("nn_module_stack", "from_node")


def numbers(regions: Sequence[Region], shape_env: Any) -> tuple[dict[int, int], list[sympy.Symbol]]:
    """A symbol for each number that is not the same in all regions.

    The dict has the places of these numbers, and the first place with the same numbers.
    """
    places: dict[int, int] = {}
    symbols: list[sympy.Symbol] = []
    known: dict[tuple[int, ...], int] = {}
    for place, values in enumerate(zip(*(region.numbers for region in regions), strict=True)):
        if len({*values}) == 1:
            continue
        if values not in known:
            known[values] = place
            source = ConstantSource(f"aoti_number_{len(shape_env.var_to_range)}")
            symbol = shape_env.create_unspecified_symbol(
                max(values), source=source, dynamic_dim=DimDynamic.DYNAMIC
            )
            shape_env.constrain_symbol_range(symbol, min(values), max(values))
            symbols.append(symbol)
        places[place] = known[values]
    return places, symbols


def function(
    region: Region, places: dict[int, int], symbols: Sequence[sympy.Symbol], fake_mode: Any
) -> tuple[fx.GraphModule, list[int]]:
    """The region as a function, and the positions of the arguments that it writes to.

    A run with fake tensors shows these. It also shows that the results are what they were in the
    program, and that they are new tensors.
    """
    graph = fx.Graph()
    env: dict[fx.Node, Any] = {}
    given: list[Any] = []
    with fake_mode:
        for i, operand in enumerate(region.operands):
            value = operand.meta["val"]
            env[operand] = graph.placeholder(f"tensor_{i}")
            given.append(_empty(value.shape, value.stride(), value))
            env[operand].meta["val"] = given[-1]
    numbers: dict[int, fx.Node] = {}
    for place, symbol in zip(dict.fromkeys(places.values()), symbols, strict=True):
        numbers[place] = graph.placeholder(f"number_{place}")
        hint = fake_mode.shape_env.backed_var_to_val[symbol]
        given.append(fake_mode.shape_env.create_symintnode(symbol, hint=int(hint)))
        numbers[place].meta["val"] = given[-1]
    sizes = known_sizes(region)
    _refuse_unknown_sizes(region, sizes)

    def of_size(node: fx.Node) -> Any:
        if node not in env:
            value = node.meta["val"]
            expression = repeats.number(value)
            if getattr(sympy.sympify(expression), "is_Integer", False):
                env[node] = int(sympy.sympify(expression))
            elif (place := sizes.get(expression)) is not None:
                tensor = env[region.operands[place[0]]]
                env[node] = graph.call_function(SIZE, (tensor, place[1]))
                env[node].meta["val"] = value
            elif node.op != "call_function" or node.target is SIZE:
                raise UnfitError(f"the size {expression} is not known inside")
            else:
                for argument in node.all_input_nodes:
                    of_size(argument)
                env[node] = graph.node_copy(node, env.__getitem__)
        return env[node]

    def argument_of(node: fx.Node) -> Any:
        return of_size(node) if repeats.is_size(node) else env[node]

    place = 0
    for node in region.nodes:
        for argument in node.all_input_nodes:
            argument_of(argument)
        copied = env[node] = graph.node_copy(node, env.__getitem__)
        for i in repeats.places_of_numbers(node):
            if place in places:
                copied.update_arg(i, numbers[places[place]])
            place += 1
    graph.output(tuple(env[node] for node in region.results))
    function = fx.GraphModule({}, graph)
    return function, _written(function, region, given, fake_mode)


def _written(
    function: fx.GraphModule, region: Region, given: Sequence[Any], fake_mode: Any
) -> list[int]:
    tensors = given[: len(region.operands)]
    before = [tensor._version for tensor in tensors]
    # Without the dispatcher, operators that are made of others would make constants of sizes.
    with fake_mode, enable_python_dispatcher(), torch.no_grad():
        results = function(*given)
    storages = [t.untyped_storage()._cdata for t in (*tensors, *results)]
    if len({*storages}) != len(storages):
        raise UnfitError("a result shares memory with an argument or another result")
    for result, node in zip(results, region.results, strict=True):
        if repeats.kind(result) != repeats.kind(node.meta["val"]):
            raise UnfitError("a result is not what it was")
    return [i for i, t in enumerate(tensors) if t._version != before[i]]


def known_sizes(region: Region) -> dict[Any, tuple[int, int]]:
    """Sizes that vary, with an operand and a dim that have them."""
    sizes: dict[Any, tuple[int, int]] = {}
    for i, operand in enumerate(region.operands):
        for d, size in enumerate(operand.meta["val"].shape):
            if isinstance(size, torch.SymInt):
                sizes.setdefault(size.node.expr, (i, d))
    return sizes


def _refuse_unknown_sizes(region: Region, sizes: dict[Any, tuple[int, int]]) -> None:
    for node in (*region.operands, *region.nodes):
        values = node.meta["val"]
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if unknown := free_symbols(value) - sizes.keys():
                raise UnfitError(f"the size {sorted(unknown, key=str)} is not known inside")


def _empty(size: Sequence[Any], stride: Sequence[Any], like: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=like.dtype, device=like.device)


@dataclasses.dataclass(frozen=True)
class Operator:
    """What is called for a function. It takes lists: a schema has at most 64 arguments.

    tensors: their number. written: the positions of those that it writes to.
    """

    overload: Any
    tensors: int
    written: tuple[int, ...]

    def positions(self) -> list[int]:
        """Of all tensors, as the operator takes them."""
        return [*(i for i in range(self.tensors) if i not in self.written), *self.written]

    def arguments(self, tensors: Sequence[Any], numbers: Sequence[Any]) -> list[list[Any]]:
        count = self.tensors - len(self.written)
        ordered = [tensors[i] for i in self.positions()]
        return [given for given in (ordered[:count], ordered[count:], [*numbers]) if given]

    def parts(self, arguments: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        """The tensors, in order, and the numbers."""
        flat = [value for given in arguments for value in given]
        ordered = dict(zip(self.positions(), flat, strict=False))
        return [ordered[i] for i in range(self.tensors)], flat[self.tensors :]


def operator(
    name: str, library: Any, region: Region, written: Sequence[int], numbers: int
) -> Operator:
    """An operator without code, of which torch knows what it returns and writes to."""
    count = len(region.operands)
    kinds_of_arguments = (
        ("Tensor[] read", count - len(written)),
        ("Tensor(a!)[] written", len(written)),
        ("SymInt[] numbers", numbers),
    )
    arguments = ", ".join(text for text, number in kinds_of_arguments if number)
    returned = ", ".join(["Tensor"] * len(region.results))
    library.define(f"{name}({arguments}) -> ({returned})", tags=(torch.Tag.pt2_compliant_tag,))
    overload = getattr(getattr(torch.ops, NAMESPACE), name).default
    defined = Operator(overload, count, tuple(written))
    symbols = {
        size: place for size, place in known_sizes(region).items() if isinstance(size, sympy.Symbol)
    }
    kinds = [node.meta["val"] for node in region.results]
    shapes = [[[*map(repeats.number, v)] for v in (k.shape, k.stride())] for k in kinds]

    def fake(*arguments: Any) -> Any:
        given, _ = defined.parts(arguments)
        known = {symbol: given[i].shape[d] for symbol, (i, d) in symbols.items()}

        def value(size: Any) -> Any:
            if isinstance(size, int):
                return size
            return sympy_interp(PythonReferenceAnalysis, known, size)

        results = [
            _empty([*map(value, size)], [*map(value, stride)], like)
            for (size, stride), like in zip(shapes, kinds, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
    return defined


def call(
    graph: fx.Graph,
    operator: Operator,
    tensors: Sequence[fx.Node],
    numbers: Sequence[int],
    last: fx.Node,
    results: Sequence[fx.Node],
) -> list[fx.Node]:
    """Calls an operator after the last of the nodes that it replaces, for the results of these."""
    with graph.inserting_after(last):
        arguments = operator.arguments(tensors, numbers)
        made = graph.call_function(operator.overload, tuple(arguments))
    made.meta = {k: v for k, v in last.meta.items() if k in _ORIGIN}
    values = tuple(node.meta["val"] for node in results)
    made.meta["val"] = values if len(values) > 1 else values[0]
    parts = [made]
    if len(values) > 1:
        with graph.inserting_before(made.next):
            parts = [
                graph.call_function(python_operator.getitem, (made, i)) for i in range(len(values))
            ]
        for part, value in zip(parts, values, strict=True):
            part.meta = {**made.meta, "val": value}
    for node, part in zip(results, parts, strict=True):
        node.replace_all_uses_with(part)
    return parts
