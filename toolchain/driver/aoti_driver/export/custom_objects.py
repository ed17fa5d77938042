"""Objects of custom classes among a module's members become constants of the program.

torch.export has a node ``call_torchbind(object, "find", x)`` for each call of a method. Here it
becomes a call of the operator that the method is registered as: see program/objects.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError, listed
from aoti_driver.contract.source_locations import place
from aoti_driver.export.locations import location
from aoti_driver.export.source import SourceTree
from aoti_driver.program import objects

_CLASSES = "__torch__.torch.classes."
_METHODS_OF_ALL = frozenset({"__init__", "__getstate__", "__setstate__", "__obj_flatten__"})


def check(module: torch.nn.Module, strict: bool, label: str) -> None:
    """Refuses objects whose classes are not from AOTI_CUSTOM_CLASS, or lack a part of their fake
    class.
    """
    for name, value in _members(module):
        if not isinstance(value, torch.ScriptObject):
            for found in pytree.tree_leaves(value):
                if isinstance(found, torch.ScriptObject):
                    raise DriverError(
                        f"{label}: self.{name} holds an object of the class {_class_name(found)}, "
                        "and torch.export finds only objects that are members themselves: make it "
                        "a member, self.name = object"
                    )
            continue
        if strict:
            raise DriverError(
                f"{label}: strict = True: self.{name} is an object of the class "
                f"{_class_name(value)}, and torch {torch.__version__} can trace methods of objects "
                "only with strict = False"
            )
        class_name = _class_name(value)
        if not _is_ours(class_name):
            raise DriverError(
                f"{label}: self.{name} is an object of the class {class_name}, which is not "
                "declared with AOTI_CUSTOM_CLASS: compiled code can't have it. Write the class "
                "as in docs/custom_classes.md"
            )
        fake = objects.fake_class(class_name)
        if fake is None:
            raise DriverError(f"{label}: self.{name}: {objects.without_fake_class(class_name)}")
        needed = ["__obj_unflatten__", *_methods(value)]
        if missing := [method for method in needed if not hasattr(fake, method)]:
            raise DriverError(
                f"{label}: self.{name}: the fake class {fake.__name__} of {class_name} has no "
                f"{listed(missing)}: docs/custom_classes.md"
            )


def written_out(ep: ExportedProgram, tree: SourceTree, label: str) -> None:
    """Replaces the objects by their states, and calls of methods by calls of operators."""
    specs = ep.graph_signature.input_specs
    has_objects = any(isinstance(value, torch.ScriptObject) for value in ep.constants.values())
    if not has_objects and all(spec.kind != InputKind.CUSTOM_OBJ for spec in specs):
        return
    placeholders = {node.name: node for node in ep.graph.find_nodes(op="placeholder")}
    for i, spec in enumerate(specs):
        if spec.kind != InputKind.CUSTOM_OBJ:
            continue
        node, name = placeholders[spec.arg.name], str(spec.target)
        value: Any = ep.constants[name]
        fields = value.__obj_flatten__()
        found = objects.describe(name, _class_name(value), fields)
        objects.know(found)
        for call in list(node.users):
            _call_operator(call, found, tree, label)
        new = _operator(found.class_name, objects.NEW)
        state = new(torch.empty(0, dtype=torch.uint8), *(field for _, field in fields))
        ep.constants[name] = state
        specs[i] = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(spec.arg.name), name)
        node.meta["val"] = _fake_mode(ep).from_tensor(state, static_shapes=True)
    # The other names of these objects.
    for name in [n for n, value in ep.constants.items() if isinstance(value, torch.ScriptObject)]:
        del ep.constants[name]
    ep.graph_module.recompile()


def _call_operator(call: Node, found: objects.CustomObject, tree: SourceTree, label: str) -> None:
    if call.target is not torch.ops.higher_order.call_torchbind:
        raise DriverError(
            f"{label}: {place(call.name, location(call, tree))}: {call.target} takes the object "
            f"self.{found.name}, and compiled code can only call methods of objects"
        )
    if not call.users:  # methods are const: the call has no effect
        call.graph.erase_node(call)
        return
    state, method, *arguments = call.args
    op = _operator(found.class_name, str(method))
    names = [argument.name for argument in op._schema.arguments[2:]]
    arguments += [call.kwargs[name] for name in names[len(arguments) :]]
    call.target = op
    call.args = (state, found.name, *arguments)
    call.kwargs = {}


def _members(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """The objects, and what may hold some."""
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, (torch.ScriptObject, list, tuple, dict)):
                yield f"{prefix}.{name}" if prefix else name, value


def _methods(value: Any) -> list[str]:
    return [name for name in value._method_names() if name not in _METHODS_OF_ALL]


def _class_name(value: Any) -> str:
    """As in "example::Buckets"."""
    qualified: str = value._type().qualified_name()
    name_space, _, name = qualified.removeprefix(_CLASSES).rpartition(".")
    return f"{name_space}::{name}"


def _is_ours(class_name: str) -> bool:
    return f"{class_name}.{objects.NEW}" in torch._C._dispatch_get_all_op_names()


def _operator(class_name: str, method: str) -> Any:
    name_space, _, name = class_name.partition("::")
    return getattr(getattr(getattr(torch.ops, name_space), name), method)


def _fake_mode(ep: ExportedProgram) -> Any:
    from torch._guards import detect_fake_mode

    values = [node.meta.get("val") for node in ep.graph.nodes]
    return detect_fake_mode([v for v in values if isinstance(v, torch.Tensor)])
