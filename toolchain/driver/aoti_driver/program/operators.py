"""Operators of programs' own, from ``torch_custom_ops``.

Where a model's source runs, their libraries are loaded. Where a program is only read, they are
declared by the schemas that the graph's file has, and have no kernels. In both cases their fake
kernels come from the Python files that belong to them.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.namespaces import is_own
from aoti_driver.program import torchvision_operators
from aoti_driver.program.nodes import nodes_of

# The names of the operators that this process has loaded or declared: "my::scale.overload".
_declared: set[str] = set()
# torch forgets an operator with the library that declared it.
_libraries: list[Any] = []


def is_declared(op: Any) -> bool:
    """Whether an operator is from ``custom_ops``."""
    return _is_overload(op) and op.name() in _declared


def _is_overload(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload)


def load(libraries: Sequence[str]) -> None:
    """Loads ``<label>=<path>`` entries, and notes the operators that they register."""
    for entry in libraries:
        label, _, path = entry.partition("=")
        before = _names()
        try:
            torch.ops.load_library(Path(path).absolute())  # type: ignore[no-untyped-call]
        except OSError as e:
            raise DriverError(f"{label}: its operators can't be loaded: {e}") from None
        if problems := _problems(path):
            raise DriverError(f"{label}: its operators can't be registered:\n{problems}")
        _declared.update(name for name in _names() - before if is_own(name))


def _problems(path: str) -> str:
    """What the library noted while it was loaded, a line each."""
    function = getattr(ctypes.CDLL(str(Path(path).absolute())), "aoti_operators_problems", None)
    if function is None:  # operators on at::Tensor, which torch itself checks
        return ""
    function.restype = ctypes.c_char_p
    return textwrap.indent(function().decode("utf-8", "replace").rstrip(), "  ")


def declare(schemas: Sequence[str]) -> None:
    """Declares the operators of a program that this process does not have."""
    known = _names()
    for text in schemas:
        schema = torch._C.parse_schema(text)
        name = f"{schema.name}.{schema.overload_name}".removesuffix(".")
        if name not in known:
            new_library: Any = torch.library.Library
            _libraries.append(new_library(schema.name.partition("::")[0], "FRAGMENT"))
            _libraries[-1].define(text.partition("::")[2])
        _declared.add(name)
    torchvision_operators.complete()


def schemas(ep: ExportedProgram) -> list[str]:
    """What :func:`declare` takes, for the operators that a program calls."""
    found: list[Any] = [node.target for node in nodes_of(ep)]
    # torch wraps operators that write to their arguments.
    found += [node.args[0] for node in nodes_of(ep) if node.args]
    return sorted(
        {
            str(operator._schema)
            for operator in found
            if is_declared(operator) or torchvision_operators.is_known(operator)
        }
    )


def import_fakes(modules: Sequence[str], import_roots: Sequence[str]) -> None:
    """Imports the Python files that register fake kernels, by their paths below the runfiles."""
    for path in modules:
        import_file(path, import_roots, "the fake kernels of custom_ops")
    if modules:  # the model's source, which is imported later, may have others
        note(compiled())


def import_file(path: str, import_roots: Sequence[str], what: str) -> bool:
    """Imports a file, by its path below the runfiles, that registers something; False if another
    file has imported it.

    what: for errors.
    """
    name = _module_name(path, import_roots)
    if name in sys.modules:
        return False
    try:
        importlib.import_module(name)
    except Exception as e:
        raise DriverError(
            f"{path.removeprefix('_main/')}: {what} can't be registered: "
            f"{type(e).__name__}: {str(e).strip()}"
        ) from e
    return True


def note(names: Iterable[str]) -> None:
    """These operators, such as "my::scale", are from ``custom_ops``."""
    _declared.update(names)


def compiled() -> dict[str, str]:
    """The operators that modules of ``torch_operator`` targets have registered, and the targets of
    their models.
    """
    registration = sys.modules.get("aoti_operator.registration")
    found: dict[str, str] = getattr(registration, "COMPILED", {})
    return found


def _module_name(path: str, import_roots: Sequence[str]) -> str:
    """
    >>> _module_name("_main/ops/scale.py", ["_main", "_main/python"])
    'ops.scale'
    """
    inside = [root for root in import_roots if path.startswith(f"{root}/")]
    relative = path[len(min(inside, key=len)) + 1 :] if inside else path
    return relative.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _names() -> set[str]:
    return set(torch._C._dispatch_get_all_op_names())
