"""Imports the user's modules, and reports what the target lacks."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.export import companions
from aoti_driver.export.source import MAIN, SourceTree, causes

# torch's words for a class that no library has registered.
_ABSENT_CLASS = re.compile(r"Tried to instantiate class '([\w.]+)', but it does not exist")
_NETWORK_ERRORS = frozenset(
    {"gaierror", "herror", "URLError", "ConnectError", "ConnectionError", "MaxRetryError"}
)


def import_attribute(tree: SourceTree, reference: str, where: str) -> Any:
    """The object that ``pkg.mod:attr`` names; ``where`` begins every error."""
    module_name, separator, path = reference.partition(":")
    if not separator or not all(p.isidentifier() for p in [*module_name.split("."), path]):
        raise DriverError(
            f'{where}: expected "package.module:name", as in "models.encoder:build", '
            f'got "{reference}"'
        )
    module = _import(tree, module_name, where)
    if not hasattr(module, path):
        if hidden := _hidden(tree, module_name):
            raise DriverError(f"{where}: {hidden}")
        public = sorted(n for n in vars(module) if not n.startswith("_"))
        raise DriverError(
            f'{where}: module {module_name} has no "{path}"{did_you_mean(path, public)}. '
            f"It has: {listed(public)}."
        )
    return getattr(module, path)


def undeclared(error: BaseException, tree: SourceTree) -> str:
    """Advice for a module, a file or a class that is not among the sources; empty for others."""
    chain = list(causes(error))
    if hint := companions.explain(chain, tree):
        return hint
    missing = [e.name for e in chain if isinstance(e, ModuleNotFoundError) and e.name]
    if missing and (hidden := _hidden(tree, missing[-1])):
        return f" {hidden}"
    if missing and missing[-1].partition(".")[0] == "triton":
        return (
            " it imports Triton, which models have with operators that are written with it: give "
            "the files with torch.library.triton_op to a torch_triton_ops target, and this to "
            "custom_ops (docs/triton_op.md):"
        )
    if missing:  # the innermost one, because packages that import lazily wrap it
        return (
            f' it needs the module "{missing[-1]}", which no dep of "module" provides. Add the '
            f'target that provides "{missing[-1]}" to the deps of the py_library that imports it:'
        )
    unread = isinstance(error, FileNotFoundError | PermissionError)
    if unread and isinstance(error.filename, str | Path):  # type: ignore[attr-defined]
        path = os.path.normpath(tree.root / MAIN / error.filename)  # type: ignore[attr-defined]
        # A file outside the tree exists for other programs, but a step of a build can't open it.
        if tree.contains(path) or isinstance(error, PermissionError):
            return (
                f' it reads the file "{tree.name(path) if tree.contains(path) else path}", which '
                '"module" does not declare. Add it to the data of the py_library that reads it, '
                "or to weights:"
            )
    if absent := [m[1] for e in chain if (m := _ABSENT_CLASS.search(str(e)))]:
        return (
            f" torch.classes.{absent[-1]} is in no library that custom_ops names. Add the "
            "torch_custom_ops target whose sources declare it with AOTI_CUSTOM_CLASS "
            "(docs/custom_classes.md):"
        )
    if any(_asks_the_network(e) for e in chain):
        return (
            " it asks the network, which no step of a build reaches. Fetch the file with a "
            "repository rule (http_file), and add it to weights or to the data of the py_library "
            "that reads it:"
        )
    return ""


def _asks_the_network(error: BaseException) -> bool:
    """Whether the error is a failed connection or name lookup, or a library's error because of
    one.
    """
    if isinstance(error, PermissionError) and error.filename is None:
        frames = traceback.walk_tb(error.__traceback__)
        return any(frame.f_globals.get("__name__") == "socket" for frame, _ in frames)
    return type(error).__name__ in _NETWORK_ERRORS


def _import(tree: SourceTree, name: str, where: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        missing = e.name or "?"
        if name == missing or name.startswith(missing + "."):
            available = sorted(_modules(tree))
            if name in available and (hidden := _hidden(tree, name)):
                raise DriverError(f"{where}: {hidden}") from None
            near = [m for m in available if m.split(".")[-1] == name.split(".")[-1]] or available
            shown = near[:8] + (["..."] if len(near) > 8 else [])
            raise DriverError(
                f'{where}: no module "{name}" among the sources of "module"'
                f"{did_you_mean(name, available)}. Modules there: {listed(shown)}."
            ) from None
        raise _import_failed(e, tree, name, where) from None
    except (KeyboardInterrupt, DriverError):
        raise
    except BaseException as e:
        raise _import_failed(e, tree, name, where) from None


def _hidden(tree: SourceTree, name: str) -> str | None:
    """The reason why a module of the sources can't be imported: another module of the same name
    comes first.
    """
    top = name.split(".")[0]
    loaded = sys.modules.get(top)
    places = [getattr(loaded, "__file__", None), *getattr(loaded, "__path__", ())]
    own = {module.split(".")[0] for module in _modules(tree)}
    if loaded is None or top not in own or any(tree.contains(str(p)) for p in places):
        return None
    others = (
        "a module of Python's standard library"
        if top in sys.stdlib_module_names
        else "a package of the torch toolchain"
    )
    return (
        f'"{name}" of "module" is hidden by {others}, which is called "{top}" too and was imported '
        f'before. Give the package "{top}" another name.'
    )


def _import_failed(error: BaseException, tree: SourceTree, name: str, where: str) -> DriverError:
    message = f"{where}: {name} cannot be imported:{undeclared(error, tree)}\n"
    message += tree.describe(error)
    if isinstance(error, SyntaxError) and error.filename:
        line = (error.text or "").strip()
        message += f"\n  in {tree.name(error.filename)}, line {error.lineno}: {line}"
    return DriverError(message)


def _modules(tree: SourceTree) -> Iterator[str]:
    for import_root in tree.import_roots:
        root = tree.root / import_root
        for folder, folders, files in os.walk(root):
            if "site-packages" in Path(folder).parts:
                folders.clear()
                continue
            for file in files:
                if file.endswith(".py"):
                    path = Path(folder, file).relative_to(root).with_suffix("")
                    yield ".".join(p for p in path.parts if p != "__init__")
