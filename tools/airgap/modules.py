"""Reading of MODULE.bazel files: which versions of which modules a workspace asks for.

MODULE.bazel is Starlark without control flow, and Python's parser reads all of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .base import AirgapError

Versions = dict[str, set[str]]
BOUNDARIES = ("MODULE.bazel", "REPO.bazel", "WORKSPACE.bazel", "WORKSPACE")


@dataclass(frozen=True)
class Call:
    """A call at the top level, e.g. bazel_dep(...), with those arguments that are literals."""

    function: str
    args: tuple[object, ...]
    kwargs: dict[str, object]
    first: int  # line
    last: int


def find_workspace(start: Path) -> Optional[Path]:
    """The workspace that Bazel would use from the folder `start`."""
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in BOUNDARIES):
            return folder
    return None


def _literal(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except ValueError:
        return None
    return value


def top_level_calls(text: str, origin: str = "MODULE.bazel") -> Iterator[Call]:
    """The calls of plain functions that stand as statements of their own."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise AirgapError(f"{origin}:{error.lineno}: {error.msg}") from error
    for statement in tree.body:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        if isinstance(call.func, ast.Name):
            kwargs = {word.arg: _literal(word.value) for word in call.keywords if word.arg}
            args = tuple(_literal(arg) for arg in call.args)
            yield Call(call.func.id, args, kwargs, call.lineno, call.end_lineno or call.lineno)


def _included(workspace: Path, label: str) -> Optional[Path]:
    if not label.startswith("//"):
        return None  # a label of another repository: Bazel allows none
    package, _, name = label[2:].partition(":")
    return workspace / package / (name or "MODULE.bazel")


def asked_versions(workspaces: Iterable[Path]) -> Versions:
    """Every version that the workspaces, and the local modules they refer to, ask for."""
    versions: Versions = {}
    overridden: set[object] = set()  # modules that come from no registry
    seen: set[Path] = set()

    def read(file: Path, workspace: Path) -> None:
        file = file.resolve()
        if file in seen or not file.is_file():
            return
        seen.add(file)
        for call in top_level_calls(file.read_text(), str(file)):
            first = call.args[0] if call.args else None
            name = call.kwargs.get("name", first)
            version = call.kwargs.get("version", call.args[1] if len(call.args) > 1 else None)
            if call.function == "bazel_dep" and isinstance(name, str):
                if isinstance(version, str) and version:
                    versions.setdefault(name, set()).add(version)
            elif call.function == "single_version_override":
                name = call.kwargs.get("module_name", first)
                version = call.kwargs.get("version")
                if isinstance(name, str) and isinstance(version, str) and version:
                    versions.setdefault(name, set()).add(version)
            elif call.function in ("archive_override", "git_override"):
                overridden.add(call.kwargs.get("module_name"))
            elif call.function == "local_path_override":
                overridden.add(call.kwargs.get("module_name"))
                path = call.kwargs.get("path")
                if isinstance(path, str):
                    other = (workspace / path).resolve()
                    read(other / "MODULE.bazel", other)
            elif call.function == "include" and isinstance(first, str):
                included = _included(workspace, first)
                if included:
                    read(included, workspace)

    for workspace in workspaces:
        read(workspace / "MODULE.bazel", workspace)
    return {name: numbers for name, numbers in versions.items() if name not in overridden}
