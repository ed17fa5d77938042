"""Exports another method than forward(): the module's own, or one of a submodule.

torch.export calls forward(). The module's class is replaced by a subclass whose forward() is the
method: the module stays the root, so that its tensors have the same names in the programs of all of
its methods.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.program import storage

_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@contextlib.contextmanager
def named_in_errors(method: str | None) -> Iterator[None]:
    """Errors name the method where they say forward(), in whose place it is exported.

    Calls in the lines of the user's source that they quote, such as self.forward(), stay.
    """
    try:
        yield
    except DriverError as e:
        if method is not None:
            e.args = (re.sub(r"(?<![\w.])forward\(\)", f"{method}()", str(e)),)
        raise


def call_in_place_of_forward(module: torch.nn.Module, method: str, label: str) -> None:
    """Lets ``module(...)`` call a method: ``encode``, or ``encoder``, or ``encoder.step``.

    A submodule stands for its forward().
    """
    path, name = _find(module, method, label)
    original = type(module)
    inside = False

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:  # the method calls the module's own forward()
            return original.forward(self, *args, **kwargs)
        owner = self.get_submodule(path) if path else self
        if name == "forward" and path:
            return owner(*args, **kwargs)
        inside = True
        try:
            return getattr(owner, name)(*args, **kwargs)
        finally:
            inside = False

    owner = module.get_submodule(path) if path else module
    forward.__name__ = name
    forward.__signature__ = _with_self(  # type: ignore[attr-defined]
        inspect.signature(getattr(owner, name))
    )
    fields = {"forward": forward, "__module__": original.__module__}
    fields |= {"__qualname__": original.__qualname__, "__doc__": original.__doc__}
    module.__class__ = type(original.__name__, (original,), fields)


def without_unused_tensors(ep: ExportedProgram) -> ExportedProgram:
    """Removes the parameters, buffers and constants that the program does not read.

    A tensor stays if one that it shares memory with is read, because the first of them names all.
    """
    inputs = ep.graph_signature.input_specs
    nodes = {node.name: node for node in ep.graph.nodes if node.op == "placeholder"}
    stored = {name: view.stored for name, view in storage.layout(ep).views.items()}
    read = {s.target for s in inputs if s.kind in _STATE and nodes[s.arg.name].users}
    kept = {stored[name] for name in read if name in stored}
    unused = {name for name, base in stored.items() if base not in kept}
    for spec in [s for s in inputs if s.kind in _STATE and s.target in unused]:
        ep.graph.erase_node(nodes[spec.arg.name])
        inputs.remove(spec)
    for name in unused:
        ep.state_dict.pop(name, None)
        ep.constants.pop(name, None)
    ep.graph_module.recompile()
    return ep


def _find(module: torch.nn.Module, method: str, label: str) -> tuple[str, str]:
    """The path of the submodule (empty: the module itself), and the name of its method."""
    where = f'{label}: method "{method}"'
    owner: Any = module
    path = ""
    parts = method.split(".")
    for i, part in enumerate(parts):
        children = dict(owner.named_children())
        if part in children:
            owner, path = children[part], f"{path}.{part}" if path else part
        elif i == len(parts) - 1 and _is_method(owner, part):
            return path, part
        else:
            raise DriverError(f"{where}: {_missing(owner, path, part)}")
    return path, "forward"


def _missing(owner: torch.nn.Module, path: str, name: str) -> str:
    methods = _methods(owner)
    children = [child for child, _ in owner.named_children()]
    what = f'its submodule "{path}" ({type(owner).__name__})' if path else type(owner).__name__
    text = (
        f'{what} has neither a method nor a submodule "{name}"'
        f"{did_you_mean(name, [*methods, *children])}. Methods: {listed(methods)}."
    )
    return f"{text} Submodules: {listed(children)}." if children else text


def _methods(owner: torch.nn.Module) -> list[str]:
    names = dir(type(owner))
    return [name for name in names if not name.startswith("_") and _is_method(owner, name)]


def _is_method(owner: torch.nn.Module, name: str) -> bool:
    """Whether it is a function of the user's classes, and not one that all modules have."""
    found = inspect.getattr_static(type(owner), name, None)
    return inspect.isroutine(found) and found is not vars(torch.nn.Module).get(name)


def _with_self(signature: inspect.Signature) -> inspect.Signature:
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[first, *signature.parameters.values()])
