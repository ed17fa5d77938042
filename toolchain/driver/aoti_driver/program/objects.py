"""Objects of custom classes in a program: see docs/custom_classes.md.

A method of an object is an operator, ``example::Buckets.find``. Its first argument is the object's
state, a constant of the program; the second is the object's name. The state's values are among the
weights. What the fake class is made of is here, since code is generated without the weights.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._library.fake_class_registry import global_fake_class_registry
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.program.nodes import nodes_of
from aoti_driver.program.weights_file import dtype_name, torch_dtype

# The operators with which a class makes states and objects.
NEW, LOAD, UNLOAD = "aoti_new", "aoti_load", "aoti_unload"


@dataclasses.dataclass(frozen=True)
class CustomObject:
    """name: the constant with the state. fields: the constructor's arguments as JSON has them."""

    name: str
    class_name: str  # "example::Buckets"
    fields: tuple[tuple[str, Any], ...]

    def fake(self) -> Any:
        """An object of the fake class."""
        found = fake_class(self.class_name)
        if found is None:
            raise DriverError(without_fake_class(self.class_name))
        return found.__obj_unflatten__(tuple((name, _read(v)) for name, v in self.fields))


_known: dict[tuple[str, str], CustomObject] = {}
_with_fakes: set[str] = set()


def fake_class(class_name: str) -> Any:
    """What Python code registered for the class with ``register_fake_class``; None if nothing."""
    qualified = "__torch__.torch.classes." + class_name.replace("::", ".")
    if not global_fake_class_registry.has_impl(qualified):
        return None
    return global_fake_class_registry.get_impl(qualified)


def without_fake_class(class_name: str) -> str:
    return (
        f"the class {class_name} has no fake class, which says what its methods return. Register "
        f'one with @torch._library.register_fake_class("{class_name}") in a file of python of the '
        "torch_custom_ops target: docs/custom_classes.md"
    )


def describe(name: str, class_name: str, fields: Sequence[tuple[str, Any]]) -> CustomObject:
    """fields: what ``__obj_flatten__()`` of the object in Python returns."""
    return CustomObject(name, class_name, tuple((n, _write(value)) for n, value in fields))


def know(found: CustomObject) -> None:
    """Makes the operators of the object's class compute shapes as its fake class does."""
    _known[found.class_name, found.name] = found
    for name in torch._C._dispatch_get_all_op_names():
        class_name, _, method = name.partition(".")
        if class_name != found.class_name or name in _with_fakes:
            continue
        if method not in (NEW, LOAD, UNLOAD):
            _with_fakes.add(name)
            register: Any = torch.library.register_fake
            register(name, functools.partial(_shape, class_name, method), allow_override=True)


def _shape(class_name: str, method: str, state: Any, object: str, *args: Any) -> Any:
    return getattr(_known[class_name, object].fake(), method)(*args)


def of_program(ep: ExportedProgram) -> list[CustomObject]:
    """The objects whose methods the program calls, by their names."""
    found = {
        known.name: known
        for node in nodes_of(ep)
        if isinstance(node.target, torch._ops.OpOverload) and len(node.args) > 1
        for known in [_known.get((node.target._schema.name, str(node.args[1])))]
        if known is not None
    }
    return [found[name] for name in sorted(found)]


def to_json(ep: ExportedProgram) -> list[dict[str, Any]]:
    return [dataclasses.asdict(found) for found in of_program(ep)]


def declare(documents: Sequence[Mapping[str, Any]]) -> None:
    """What :func:`to_json` returned, in another process. The operators are declared before."""
    for document in documents:
        fields = tuple((name, value) for name, value in document["fields"])
        know(CustomObject(document["name"], document["class_name"], fields))


def _write(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return {"dtype": dtype_name(value.dtype, "a tensor"), "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        return [_write(item) for item in value]
    return {"float": value.hex()} if isinstance(value, float) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if isinstance(value, Mapping) and "float" in value:
        return float.fromhex(value["float"])
    if isinstance(value, Mapping):
        return torch.empty(value["shape"], dtype=torch_dtype(value["dtype"]))
    return value
