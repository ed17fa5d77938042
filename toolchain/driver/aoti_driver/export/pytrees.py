"""Containers in arguments and results that torch can flatten but not serialize."""

from __future__ import annotations

import json
from typing import Any

from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from aoti_driver.torch_internals import patching


def make_serializable(ep: ExportedProgram) -> None:
    """Lets torch serialize every NamedTuple and container class in the program's signature.

    torch requires users to register a name for each class. Here the class's own name is used: later
    steps identify inputs and outputs by the manifest, not by containers.
    """
    for spec in (ep.call_spec.in_spec, ep.call_spec.out_spec):
        if spec is not None:
            _register(spec)


def _register(spec: pytree.TreeSpec) -> None:
    if spec.is_leaf():
        return
    known = pytree.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if isinstance(spec.context, type) and issubclass(spec.context, tuple):
        if spec.context not in pytree.SUPPORTED_SERIALIZED_TYPES:
            _name(spec.context, None)
    elif known is None or known.serialized_type_name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        _name(spec.type, _json)
    for child in spec.children():
        _register(child)


def _json(context: Any) -> str:
    return json.dumps(context, default=repr)


def _name(kind: type[Any], to_text: Any) -> None:
    name = f"{kind.__module__}.{kind.__qualname__}"
    written = pytree._SerializeNodeDef(kind, name, to_text, None)
    patching.add_entry("torch.utils._pytree:SUPPORTED_SERIALIZED_TYPES", kind, written)
    patching.add_entry("torch.utils._pytree:SERIALIZED_TYPE_TO_PYTHON_TYPE", name, kind)
