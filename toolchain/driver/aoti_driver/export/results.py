"""The result of forward(): its numbers as tensors, its outputs, and its structure."""

from __future__ import annotations

import collections
import dataclasses
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import naming
from aoti_driver.contract.program_parts import ResultNumberType
from aoti_driver.contract.result_tree import Kind, Result

_ITEMS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
_ASSERT = torch.ops.aten._assert_scalar.default
_INT64 = range(-(2**63), 2**63)
_KINDS: dict[type, Kind] = {
    type(None): "none",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
}
_NUMBERS: dict[type, tuple[ResultNumberType, torch.dtype]] = {
    SymIntArgument: ("int", torch.int64),
    SymFloatArgument: ("float", torch.float64),
    SymBoolArgument: ("bool", torch.bool),
}


@dataclasses.dataclass(frozen=True)
class Replaced:
    """What a program returns something else for.

    numbers: a tensor's node -> the type of the Python number that it stands for.
    strings: an index among forward()'s results -> the constant; the program returns None.
    """

    numbers: Mapping[str, ResultNumberType] = dataclasses.field(default_factory=dict)
    strings: Mapping[int, str] = dataclasses.field(default_factory=dict)


NOTHING_REPLACED = Replaced()


def replace(ep: ExportedProgram) -> Replaced:
    """Makes the program return numbers that vary as tensors of rank 0, because compiled code has no
    others, and strings as None, because torch can't load programs with strings.
    """
    numbers: dict[str, ResultNumberType] = {}
    strings: dict[int, str] = {}
    taken: list[torch.fx.Node] = []
    (output,) = ep.graph.find_nodes(op="output")
    returned = list(output.args[0])
    specs = ep.graph_signature.output_specs
    user = [i for i, spec in enumerate(specs) if spec.kind == OutputKind.USER_OUTPUT]
    for place, i in enumerate(user):
        given = specs[i].arg
        if isinstance(given, ConstantArgument) and isinstance(given.value, str):
            strings[place] = given.value
            returned[i] = None
            specs[i] = dataclasses.replace(specs[i], arg=ConstantArgument(given.name, None))
        elif type(given) in _NUMBERS:
            kind, dtype = _NUMBERS[type(given)]
            taken.append(returned[i])
            returned[i] = _tensor(ep, returned[i], dtype, output)
            numbers[returned[i].name] = kind
            specs[i] = dataclasses.replace(specs[i], arg=TensorArgument(returned[i].name))
    if numbers or strings:
        output.args = (tuple(returned),)
        for number in dict.fromkeys(taken):
            symbols = _symbols(number.meta["val"])
            if _erase_unused(number):
                _forget(ep, symbols)
        for entry in ep.module_call_graph:
            if entry.fqn == "" and entry.signature is not None:
                entry.signature.outputs = [specs[i].arg for i in user]
        ep.graph_module.recompile()
    return Replaced(numbers, strings)


def _tensor(
    ep: ExportedProgram, number: torch.fx.Node, dtype: torch.dtype, output: torch.fx.Node
) -> torch.fx.Node:
    """A tensor of rank 0 with the value of a number.

    What item() took out of a tensor is taken from there: its value in a graph is a symbol, which
    Inductor can compute with, but not return.
    """
    aten = torch.ops.aten
    with ep.graph.inserting_before(output), _fake_mode(ep):

        def call(target: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
            node: torch.fx.Node = ep.graph.call_function(target, args, kwargs)
            values = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in args]
            node.meta["val"] = target(*values, **kwargs)
            return node

        if number.target in _ITEMS:
            whole = call(aten.view.default, number.args[0], [])
            result = call(aten._to_copy.default, whole, dtype=dtype)
            return result
        return call(aten.scalar_tensor.default, number, dtype=dtype)


def _erase_unused(number: torch.fx.Node) -> bool:
    """Erases what item() took out of a tensor, with torch's checks that a bool is 0 or 1."""
    bool_checks = isinstance(number.meta.get("val"), (bool, torch.SymBool)) or (
        number.target in (torch.sym_ite, operator.ge, operator.le, _ASSERT)
    )
    if number.op != "call_function" or (number.users and not bool_checks):
        return False
    unused = [_erase_unused(user) for user in list(number.users)]
    if not all(unused):
        return False
    number.graph.erase_node(number)
    return True


def _forget(ep: ExportedProgram, symbols: set[Any]) -> None:
    """Drops the ranges of symbols that the program no longer has."""
    values = pytree.tree_leaves([node.meta.get("val") for node in ep.graph.nodes])
    known = set().union(*map(_symbols, values))
    for symbol in symbols - known:
        ep.range_constraints.pop(symbol, None)


def _symbols(value: Any) -> set[Any]:
    """torch's symbols in a number, or in the sizes of a tensor."""
    if isinstance(value, torch.Tensor):
        return set().union(*map(_symbols, value.shape))
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return set(value.node.expr.free_symbols)
    return set()


def _fake_mode(ep: ExportedProgram) -> Any:
    values = [node.meta.get("val") for node in ep.graph.nodes]
    mode = detect_fake_mode(values)
    assert mode is not None, "a program whose number varies has a tensor"
    return mode


def check_types(result: Any, label: str) -> None:
    """Refuses objects that torch does not know in the result of eager PyTorch."""
    try:
        flat, _ = pytree.tree_flatten_with_path(result)
    except ValueError:  # a container that is registered without keys
        flat = [((), leaf) for leaf in pytree.tree_leaves(result)]
    for path, value in flat:
        if isinstance(value, torch.Tensor) or type(value) in _KINDS:
            continue
        kind = type(value)
        what = (
            f"{label}: forward() returns a {kind.__module__}.{kind.__qualname__}, which torch does "
            f"not know, {_place(path)}."
        )
        if dataclasses.is_dataclass(kind):
            raise DriverError(
                f"{what}\n  Register the dataclass beside its definition: "
                f"torch.export.register_dataclass({kind.__qualname__})"
            )
        raise DriverError(
            f"{what}\n  Results are tensors, numbers, strings and None, and lists, tuples, dicts, "
            "NamedTuples and registered dataclasses of them. Leave it out of the result (models of "
            "transformers: use_cache=False in the config), or register it with "
            "torch.utils._pytree.register_pytree_node in the module that defines it."
        )


def output_specs(ep: ExportedProgram) -> list[tuple[tuple[Any, ...], OutputSpec]]:
    """What forward() returns, tensors and constants, with their paths."""
    specs = [s for s in ep.graph_signature.output_specs if s.kind == OutputKind.USER_OUTPUT]
    return list(zip(naming.result_paths(ep.call_spec.out_spec), specs, strict=True))


def is_constant(spec: OutputSpec) -> bool:
    return isinstance(spec.arg, ConstantArgument)


def result_of(
    ep: ExportedProgram, replaced: Replaced, label: str
) -> tuple[list[str], Result | None]:
    """The names of the outputs, and the tree; None for a tensor, or one tuple or object of
    tensors.
    """
    pairs = output_specs(ep)
    values = {
        i: replaced.strings.get(i, spec.arg.value)
        for i, (_, spec) in enumerate(pairs)
        if isinstance(spec.arg, ConstantArgument)
    }
    outputs = [path for i, (path, _) in enumerate(pairs) if i not in values]
    constants = [pairs[i][0] for i, value in values.items() if value is not None]
    names = naming.output_names(outputs, constants)
    output_names, constant_names = iter(names), iter(names[len(outputs) :])
    leaves = []
    for i, (path, _) in enumerate(pairs):
        if i not in values:
            leaves.append(Result("output", next(output_names)))
        elif values[i] is None:
            leaves.append(Result("none"))
        else:
            leaves.append(_constant(values[i], next(constant_names), path, label))
    tree = _tree(ep.call_spec.out_spec, iter(leaves), (), label)
    flat = tree.kind in ("output", "tuple", "object") and all(
        node.kind == "output" for node in tree.nodes() if node is not tree
    )
    return names[: len(outputs)], None if flat and not replaced.numbers else tree


def _constant(value: Any, name: str, path: Sequence[Any], label: str) -> Result:
    kind = _KINDS.get(type(value))
    if kind is None:
        raise DriverError(
            f"{label}: forward() returns the {type(value).__name__} {value!r} {_place(path)}. "
            "Results are tensors, numbers, strings and None: leave it out."
        )
    if kind == "int" and value not in _INT64:
        raise DriverError(
            f"{label}: forward() returns the integer {value} {_place(path)}, which does not fit "
            "into 64 bits. Return a float, or leave it out."
        )
    if kind == "str" and "\0" in value:
        raise DriverError(
            f"{label}: forward() returns the string {value!r} {_place(path)}, which has a NUL "
            "character. Leave it out."
        )
    return Result(kind, name, str(value))


def _tree(
    spec: pytree.TreeSpec, leaves: Iterator[Result], path: tuple[Any, ...], label: str
) -> Result:
    if spec.is_leaf():
        return next(leaves)
    keys = _keys(spec)
    items = tuple(
        _tree(child, leaves, (*path, key), label) for key, child in zip(keys, spec.children())
    )
    kind = _container(spec)
    # The results of transformers are both; their fields are how people read them.
    if issubclass(kind, dict) and not dataclasses.is_dataclass(kind):
        for key in keys:
            if type(key) not in (str, int):
                raise DriverError(
                    f"{label}: forward() returns a dict with the key {key!r} {_place(path)}. "
                    "Use strings or integers as keys."
                )
        return Result("dict", keys=tuple(keys), items=items)
    if issubclass(kind, (list, collections.deque)):
        return Result("list", items=items)
    if not keys or not all(isinstance(key, str) for key in keys):
        return Result("tuple", items=items)
    return _object(spec, dict(zip(keys, items)))


def _object(spec: pytree.TreeSpec, fields: dict[str, Result]) -> Result:
    """An object with fields, in the order in which its class has them."""
    kind = _container(spec)
    if dataclasses.is_dataclass(kind):
        # torch.export.register_dataclass: the fields with values, and those that are None.
        context = spec.context
        absent = context[1] if isinstance(context, list) and len(context) == 2 else []
        if isinstance(absent, list):
            fields = {**fields, **{name: Result("absent") for name in absent}}
        order = [f.name for f in dataclasses.fields(kind) if f.name in fields]
        fields = {name: fields[name] for name in [*order, *fields]}
    return Result("object", kind.__name__, keys=tuple(fields), items=tuple(fields.values()))


def _container(spec: pytree.TreeSpec) -> type:
    """The class of a container; for NamedTuples, torch has it elsewhere."""
    kind: Any = spec.type
    return kind if isinstance(kind, type) else spec.context


def _keys(spec: pytree.TreeSpec) -> list[Any]:
    kind = _container(spec)
    if issubclass(kind, dict) and spec.type in (dict, collections.OrderedDict):
        return list(spec.context)
    return list(naming.child_keys(spec))


def _place(path: Sequence[Any]) -> str:
    text = naming.path_text(path)
    return f'at "{text}" in its result' if text else "as its result"
