"""Takes the blocks that repeat out of a program's document, before it becomes a graph.

Two modules such as ``blk.0`` and ``blk.1`` are the same computation if their operators are, in the
same order, with the same arguments, and all results have the same dtypes, sizes and strides,
symbols included. What they read from elsewhere (activations, weights, buffers) may be other tensors
of the same kind, and a few numbers that can't change a size may differ: the index of the layer.

The first block of a group stays, between two marks. The others become one node each, which reads
what the block read and returns what the rest of the program reads of it: a program of 80 layers is
loaded as quickly as one of 12. repeats.py finds these nodes in the graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from aoti_driver.inductor.convolution_fusion import CONVOLUTIONS, FUSED_BEHIND

NAMESPACE = "aoti_repeats"
# Fewer nodes are generated nearly as quickly as a function for them, and Inductor fuses them with
# others.
LEAST_SAVED = 100

_SCHEMAS = (
    "begin(int group, Tensor[] tensors, int[] numbers) -> ()",
    "end(int group, Tensor[] results) -> ()",
    "again(int group, Tensor[] tensors, int[] numbers) -> Tensor",
    "again_many(int group, Tensor[] tensors, int[] numbers) -> Tensor[]",
)
# The arguments that may differ between the calls of one block: they are neither sizes nor dims.
NUMBERS = {("torch.ops.aten.select.int", 2), ("torch.ops.aten.full.default", 1)}
_ATTENTION = "torch.ops.aten.scaled_dot_product_attention.default"
_SIZE = "torch.ops.aten.sym_size.int"
_UNBACKED = re.compile(r"Symbol\('z?u")
_SIZES = ("as_sym_int", "as_sym_float", "as_sym_bool")
_META = ("dtype", "device", "layout", "sizes", "strides")

_Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Region:
    """A call of a module, as :class:`repeats.Region`; tensors are names. key: what is equal of two
    that are the same computation.
    """

    nodes: tuple[_Json, ...]
    operands: tuple[str, ...]
    numbers: tuple[int, ...]
    results: tuple[str, ...]
    key: object


@dataclasses.dataclass
class Shortened:
    """What was taken out of a program.

    excluded: the first modules' names of groups that stay. groups: the same of those that are
    taken out. twins: for each node of the whole program, in its order, the one of the short program
    that stands for it.
    """

    excluded: set[str] = dataclasses.field(default_factory=set)
    groups: list[str] = dataclasses.field(default_factory=list)
    twins: dict[str, str] = dataclasses.field(default_factory=dict)

    def shorten(self, program: _Json) -> None:
        """Changes the document of a program, whose operators are known to torch."""
        graph = program["graph_module"]["graph"]
        signature = program["graph_module"]["signature"]
        self.groups, self.twins = [], {n: n for node in graph["nodes"] for n in _names(node)}
        finder = _Finder(graph, signature)
        groups = dict(finder.find(self.excluded))
        if not groups:
            return
        self.groups = [*groups]
        for regions in groups.values():
            first, *others = (
                [n for node in region.nodes for n in _names(node)] for region in regions
            )
            for names in others:
                self.twins.update(zip(names, first, strict=True))
        _replace(graph, signature, list(groups.values()), finder)


@contextlib.contextmanager
def operators() -> Iterator[None]:
    """Declares the operators of short programs inside of the context."""
    library = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
    try:
        for schema in _SCHEMAS:
            library.define(schema)  # type: ignore[no-untyped-call]
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]


class _Finder:
    def __init__(self, graph: _Json, signature: _Json) -> None:
        self.graph = graph
        self.meta: Mapping[str, _Json] = graph["tensor_values"]
        self.sizes = graph["sym_int_values"] | graph["sym_float_values"] | graph["sym_bool_values"]
        self.kinds = {
            next(iter(spec.values()))["arg"]["name"]: next(iter(spec))
            for spec in signature["input_specs"]
            if next(iter(spec)) in ("parameter", "buffer", "tensor_constant")
        }
        self.written = _written_arguments(graph["nodes"])
        self.readers: dict[str, list[_Json | None]] = {}
        for node in graph["nodes"]:
            for name in self.read(node["inputs"]):
                self.readers.setdefault(name, []).append(node)
        for name in self.read([graph["outputs"], signature["output_specs"]]):
            self.readers.setdefault(name, []).append(None)

    def read(self, value: Any) -> Iterator[str]:
        """The tensors in the arguments of a node, or in other parts of the document."""
        for reference in references(value):
            name = str(reference["name"])
            yield self.written.get(name, name)

    def find(self, excluded: Container[str] = ()) -> Iterator[tuple[str, list[_Region]]]:
        """Regions without a common node, in groups that compute the same; outer modules first."""
        places = {id(node): i for i, node in enumerate(self.graph["nodes"])}
        taken: set[int] = set()
        for nodes_of_path in self._by_depth():
            alike: dict[object, tuple[str, list[_Region]]] = {}
            for path, nodes in nodes_of_path.items():
                if taken.isdisjoint(map(id, nodes)) and (
                    region := self.describe(nodes, self._between(nodes, places))
                ):
                    alike.setdefault(region.key, (path, []))[1].append(region)
            for path, regions in alike.values():
                saved = (len(regions) - 1) * len(regions[0].nodes)
                if saved >= LEAST_SAVED and path not in excluded:
                    yield path, regions
                    taken.update(id(node) for region in regions for node in region.nodes)

    def _by_depth(self) -> Iterator[Mapping[str, list[_Json]]]:
        """The operators inside of each module whose name is a number; outer modules first."""
        depths: dict[int, dict[str, list[_Json]]] = {}
        for node in self.graph["nodes"]:
            if not _is_size(node):
                for path in _modules((node["metadata"] or {}).get("nn_module_stack", "")):
                    depths.setdefault(path.count("."), {}).setdefault(path, []).append(node)
        for depth in sorted(depths):
            yield depths[depth]

    def _between(self, nodes: Sequence[_Json], places: Mapping[int, int]) -> Sequence[_Json]:
        return self.graph["nodes"][places[id(nodes[0])] : places[id(nodes[-1])] + 1]  # type: ignore[no-any-return]

    def describe(self, nodes: Sequence[_Json], span: Sequence[_Json]) -> _Region | None:
        """None if the nodes can't be a function of their own."""
        inside = {id(node) for node in nodes}
        if any(id(node) not in inside and not _is_size(node) for node in span):
            return None
        if not all(self._ordinary(node) for node in nodes):
            return None
        own = {name: i for i, name in enumerate(n for node in nodes for n in made(node))}
        operands: dict[str, int] = {}
        numbers: list[int] = []
        rows: list[object] = []

        def described(value: Any) -> object:
            if isinstance(value, list):
                return tuple(map(described, value))
            if not isinstance(value, dict):
                return value
            if value.keys() == {"as_name"}:
                return _expression(self.sizes[value["as_name"]])
            if value.keys() != {"name"}:
                return tuple((key, described(item)) for key, item in value.items())
            (name,) = self.read(value)
            if name in own:
                return own[name]
            return ("operand", operands.setdefault(name, len(operands)))

        for node in nodes:
            arguments: list[object] = []
            for i, argument in enumerate(node["inputs"]):
                number = argument["arg"].get("as_int")
                if (node["target"], i) in NUMBERS and number is not None and number >= 0:
                    numbers.append(number)
                    arguments.append("number")
                else:
                    rest = argument["name"], argument["kind"], described(argument["arg"])
                    arguments.append(rest)
            kinds = tuple(self._kind(name) for name in made(node))
            rows.append((node["target"], tuple(arguments), kinds))
        results = [name for name in own if self._is_read(name, inside)]
        if not results or not all(name in self.meta for name in operands):
            return None
        if any(self._is_fused(node, inside) for node in nodes):
            return None
        readers = [reader for name in own for reader in self.readers.get(name, ())]
        sizes = [reader for reader in readers if reader is not None and _is_size(reader)]
        if any(self.place_of_size(node, operands) is None for node in sizes):
            return None
        given = tuple((self.kinds.get(name), self._kind(name)) for name in operands)
        key = (tuple(rows), given, tuple(own[name] for name in results))
        return _Region(tuple(nodes), tuple(operands), tuple(numbers), tuple(results), key)

    def _is_read(self, name: str, inside: set[int]) -> bool:
        return any(
            node is None or (id(node) not in inside and not _is_size(node))
            for node in self.readers.get(name, ())
        )

    def _is_fused(self, node: _Json, inside: set[int]) -> bool:
        """Whether it is a convolution that is one operator with what reads it outside."""
        if _operator(node["target"]) not in CONVOLUTIONS:
            return False
        readers = [reader for name in made(node) for reader in self.readers.get(name, ())]
        outside = [r for r in readers if r is None or (id(r) not in inside and not _is_size(r))]
        return any(r is not None and _operator(r["target"]) in FUSED_BEHIND for r in outside)

    def place_of_size(self, node: _Json, operands: Iterable[str]) -> tuple[str, int] | None:
        """An operand of a region, and the dim that has the size that the node reads."""
        if node["target"] != _SIZE:
            return None
        size = _expression(self.sizes[node["outputs"][0]["as_sym_int"]["as_name"]])
        for operand in operands:
            for dim, other in enumerate(self.meta[operand]["sizes"]):
                if _expression(other) == size:
                    return operand, dim
        return None

    def read_size_of_operand(self, node: _Json, regions: Mapping[str, _Region]) -> None:
        """In place of the size of something inside of a region."""
        for name in self.read(node["inputs"]):
            if name in regions and (place := self.place_of_size(node, regions[name].operands)):
                operand, dim = place
                node["inputs"] = [
                    _argument("self", {"as_tensor": {"name": operand}}),
                    _argument("dim", {"as_int": dim}),
                ]

    def _kind(self, name: str) -> str:
        meta = self.meta[name]
        return json.dumps([meta[field] for field in _META])

    def _ordinary(self, node: _Json) -> bool:
        """Whether the node computes tensors from tensors, and nothing else."""
        operator = _operator(node["target"])
        if operator is None:
            return False
        if torch.Tag.nondeterministic_seeded in operator.tags and not _no_dropout(node):
            return False
        if any(output.keys() - {"as_tensor", "as_tensors"} for output in node["outputs"]):
            return False
        text = json.dumps(node["inputs"])
        if '"as_custom_obj"' in text or '"as_graph"' in text:
            return False
        names = made(node)
        return bool(names) and not any(_UNBACKED.search(self._kind(name)) for name in names)


def _replace(
    graph: _Json, signature: _Json, groups: Sequence[Sequence[_Region]], finder: _Finder
) -> None:
    begins: dict[int, _Json] = {}
    ends: dict[int, _Json] = {}
    dropped: set[int] = set()
    for i, (first, *others) in enumerate(groups):
        begins[id(first.nodes[0])] = _node(f"aoti_begin_{i}", "begin", i, first)
        ends[id(first.nodes[-1])] = _end(f"aoti_end_{i}", i, first)
        for j, region in enumerate(others):
            dropped.update(map(id, region.nodes))
            ends[id(region.nodes[-1])] = _again(f"aoti_again_{i}_{j}", i, region)
    gone = {
        name
        for _, *others in groups
        for region in others
        for node in region.nodes
        for name in made(node)
        if name not in region.results
    }
    sizes_of: dict[str, _Region] = {
        name: region
        for regions in groups
        for region in regions
        for node in region.nodes
        for name in made(node)
    }
    nodes = []
    for node in graph["nodes"]:
        if begin := begins.get(id(node)):
            nodes.append(begin)
        if id(node) not in dropped:
            nodes.append(node)
            if _is_size(node):
                finder.read_size_of_operand(node, sizes_of)
        if end := ends.get(id(node)):
            nodes.append(end)
    graph["nodes"] = nodes
    graph["tensor_values"] = {k: v for k, v in graph["tensor_values"].items() if k not in gone}
    for reference in references([nodes, graph["outputs"], signature["output_specs"]]):
        if reference["name"] in gone:
            reference["name"] = finder.written[reference["name"]]


def _end(name: str, group: int, region: _Region) -> _Json:
    node = _node(name, "end")
    tensors = [{"name": result} for result in region.results]
    node["inputs"] = [
        _argument("group", {"as_int": group}),
        _argument("results", {"as_tensors": tensors}),
    ]
    return node


def _again(name: str, group: int, region: _Region) -> _Json:
    results = [{"name": result} for result in region.results]
    node = _node(name, "again" if len(results) == 1 else "again_many", group, region)
    if len(results) == 1:
        node["name"] = region.results[0]
        node["outputs"] = [{"as_tensor": results[0]}]
    else:
        node["outputs"] = [{"as_tensors": results}]
    # The others are of modules inside.
    node["metadata"] = region.nodes[-1]["metadata"]
    return node


def _node(name: str, target: str, group: int = 0, region: _Region | None = None) -> _Json:
    inputs = []
    if region is not None:
        tensors = [{"name": operand} for operand in region.operands]
        inputs = [
            _argument("group", {"as_int": group}),
            _argument("tensors", {"as_tensors": tensors}),
            _argument("numbers", {"as_ints": [*region.numbers]}),
        ]
    return {
        "name": name,
        "target": f"torch.ops.{NAMESPACE}.{target}.default",
        "inputs": inputs,
        "outputs": [],
        "metadata": {},
        "is_hop_single_tensor_return": None,
    }


def _argument(name: str, value: _Json) -> _Json:
    return {"name": name, "arg": value, "kind": 1}


def _expression(value: _Json) -> str:
    return str(value["as_expr"]["expr_str"]) if "as_expr" in value else json.dumps(value)


def references(value: Any) -> Iterator[_Json]:
    """The mentions of tensors in a part of the document: ``{"name": ...}``.

    Branches and loops have names of their own, and are passed what they read.
    """
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(reversed(item))
        elif isinstance(item, dict):
            if item.keys() == {"name"} and isinstance(item["name"], str):
                yield item
            else:
                pending.extend(v for key, v in item.items() if key != "as_graph")


def made(node: _Json) -> list[str]:
    """The tensors that a node returns."""
    return [reference["name"] for reference in references(node["outputs"])]


def _names(node: _Json) -> list[str]:
    """The names of the graph's nodes that are made of one in the document."""
    return list(dict.fromkeys([node["name"], *made(node)]))


def _written_arguments(nodes: Sequence[_Json]) -> dict[str, str]:
    """What an operator that writes to its argument returns is the argument."""
    written: dict[str, str] = {}
    for node in nodes:
        operator = _operator(node["target"])
        if operator is None or not node["inputs"] or len(node["outputs"]) != 1:
            continue
        schema = operator._schema
        given, returned = node["inputs"][0]["arg"], node["outputs"][0]
        if len(schema.returns) != 1 or "as_tensor" not in given or "as_tensor" not in returned:
            continue
        result, first = schema.returns[0].alias_info, schema.arguments[0].alias_info
        if result is None or first is None or not result.is_write or not first.is_write:
            continue
        if result.before_set == first.before_set:
            name = given["as_tensor"]["name"]
            written[returned["as_tensor"]["name"]] = written.get(name, name)
    return written


@functools.cache
def _operator(target: str) -> Any:
    parts = target.split(".")
    if parts[:2] != ["torch", "ops"] or len(parts) != 5:
        return None
    packet = getattr(getattr(torch.ops, parts[2]), parts[3], None)
    found = getattr(packet, parts[4], None)
    return found if isinstance(found, torch._ops.OpOverload) else None


@functools.cache
def _modules(stack: str) -> tuple[str, ...]:
    """The paths of the modules around a node whose names are numbers."""
    paths = (entry.split(",")[1] for entry in stack.split(";") if entry.count(",") > 1)
    return tuple(path for path in paths if path.rpartition(".")[2].isdigit())


def _is_size(node: _Json) -> bool:
    outputs = node["outputs"]
    return len(outputs) == 1 and any(kind in outputs[0] for kind in _SIZES)


def _no_dropout(node: _Json) -> bool:
    given = {argument["name"]: argument["arg"] for argument in node["inputs"]}
    probability = given.get("dropout_p", {"as_float": 0.0}).get("as_float")
    return node["target"] == _ATTENTION and isinstance(probability, float) and not probability
