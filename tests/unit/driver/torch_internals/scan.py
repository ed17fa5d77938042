"""Finds what the driver's source changes in PyTorch, and the private names that it uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# The packages whose attributes are nobody's to change.
PACKAGES = ("torch", "sympy")
# Methods that change what they are called on.
_CHANGING = frozenset(
    {
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
        *("setdefault", "update", "difference_update", "intersection_update", "patch"),
        *("addFilter", "addHandler", "setLevel", "__setattr__", "__setitem__", "__delattr__"),
    }
)
_PRIVATE = re.compile(r"_(?!_)")


class Source:
    """One file. Names that stand for PyTorch's modules and what is in them are followed."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self._names: dict[str, str] = {}
        self._texts = {
            target.id: str(node.value.value)
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._name(alias.asname or alias.name.partition(".")[0], alias)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(self.tree):
            value = getattr(node, "value", None)
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or value is None:
                continue
            pairs = [(target, value) for target in targets]
            if isinstance(value, ast.Tuple) and isinstance(targets[0], ast.Tuple):
                pairs = list(zip(targets[0].elts, value.elts))
            for target, part in pairs:
                found = self.dotted(part)
                if found and isinstance(target, ast.Name):
                    self._names[target.id] = found
        self._names = {n: d for n, d in self._names.items() if d.split(".")[0] in PACKAGES}

    def _name(self, name: str, alias: ast.alias) -> None:
        self._names[name] = alias.name if alias.asname else name

    def dotted(self, node: ast.AST | None) -> str | None:
        """``torch._ops.OpOverload`` for an expression that begins with a name of PyTorch's."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.Attribute):
            start = self.dotted(node.value)
            return f"{start}.{node.attr}" if start else None
        if isinstance(node, ast.Subscript):
            return self.dotted(node.value)
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr == "import_module":
                name = self._text(node.args[0])
                return name if name.split(".")[0] in PACKAGES else None
            if isinstance(function, ast.Name) and function.id in ("vars", "getattr"):
                return self.dotted(node.args[0])
        return None

    def _text(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self._texts.get(node.id, "")
        return str(node.value) if isinstance(node, ast.Constant) else ""

    def changes(self) -> Iterator[tuple[int, str]]:
        """(line, what is changed) for all that is not left to torch_internals.patching."""
        for node in ast.walk(self.tree):
            line = getattr(node, "lineno", 0)
            for target in _targets(node):
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    if found := self.dotted(target):
                        yield line, found
                    elif private := _private_of_others(target):
                        yield line, private
            if isinstance(node, ast.Call):
                function = node.func
                name = getattr(function, "id", getattr(function, "attr", None))
                plain = isinstance(function, ast.Name) and name in ("setattr", "delattr")
                changed = node.args[0] if plain else getattr(function, "value", None)
                if (plain or name in _CHANGING) and (found := self.dotted(changed)):
                    yield line, f"{found}: {name}()"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names]
                module = getattr(node, "module", None) or ""
                if any("mock" in name.split(".") for name in (*names, *module.split("."))):
                    yield line, "unittest.mock"

    def private(self) -> Iterator[tuple[int, str]]:
        """(line, name): ``torch.a._b.c`` for what is imported, ``_a`` for attributes of others."""
        inner: set[ast.AST] = set()
        own = {n.name for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and node not in inner:
                inner.update(part for part in ast.walk(node) if isinstance(part, ast.Attribute))
                found = self.dotted(node)
                if found is None:
                    for part in ast.walk(node):
                        name = _private_of_others(part) if isinstance(part, ast.Attribute) else None
                        if name and name not in own:
                            yield node.lineno, name
                        if isinstance(part, ast.Attribute) and (found := self.dotted(part)):
                            break
                if found and _is_private(found):
                    yield node.lineno, re.sub(r"(\.__\w+__)+$", "", found)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
                if _PRIVATE.match(name := self._text(node.args[1])):
                    yield node.lineno, name
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    if name.split(".")[0] in PACKAGES and _is_private(name):
                        yield node.lineno, name


def _targets(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, (ast.Assign, ast.Delete)):
        return list(node.targets)
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [node.target]
    return []


def _private_of_others(node: ast.AST) -> str | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Attribute) or not _PRIVATE.match(node.attr):
        return None
    own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os", "sys")
    return None if own else node.attr


def _is_private(dotted: str) -> bool:
    return any(_PRIVATE.match(part) for part in dotted.split("."))
