"""The driver's rooms: which sub-package may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import aoti_driver
import pytest

PACKAGE = Path(str(aoti_driver.__file__)).parent

# From the lowest layer to the highest. A module imports its own room and rooms of lower layers.
LAYERS = (
    ("base",),
    ("torch_internals",),
    ("contract",),
    ("program",),
    ("packing", "cuda"),
    ("export", "inductor", "frozen", "bindings", "artifacts"),
    ("verify", "triton_kernel"),
    ("process",),
)
LAYER_OF = {room: number for number, layer in enumerate(LAYERS) for room in layer}


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, module or attribute of one) for each import of the driver's own modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            names = [f"{start}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith((".", "aoti_driver.")) or name == "aoti_driver":
                yield node.lineno, name


def violations(package: Path) -> Iterator[str]:
    """A sentence for each import that the layers forbid: the file, the import and the rule."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        if len(name.parts) == 1:
            if name.name != "__init__.py":
                yield f"{name}: a module is in a room, a sub-package of aoti_driver"
            continue
        room = name.parts[0]
        if room not in LAYER_OF:
            yield f"{name}: the room {room} is in none of the LAYERS"
            continue
        lower = [other for layer in LAYERS[: LAYER_OF[room]] for other in layer]
        for line, imported in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{name}:{line}: imports {imported}"
            target = imported.split(".")[1] if "." in imported else ""
            if imported.startswith("."):
                yield f"{where}: write the whole name, aoti_driver.<room>.<module>"
            elif target not in (room, *lower):
                allowed = ", ".join([f"{room} itself", *lower])
                yield f"{where}: {room} may import {allowed} only"


def test_modules_import_lower_rooms_only() -> None:
    assert list(violations(PACKAGE)) == []


def test_every_room_exists_and_says_what_it_is_for() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(LAYER_OF)
    for room in rooms:
        text = (PACKAGE / room / "__init__.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), f"{room}/__init__.py has no docstring"
        assert len(ast.parse(text).body) == 1, f"{room}/__init__.py: a room exports nothing itself"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "contract/dims.py",
            "from aoti_driver.export import calls",
            "contract/dims.py:1: imports aoti_driver.export.calls: contract may import contract "
            "itself, base, torch_internals only",
        ),
        (
            "export/calls.py",
            "def f():\n    from aoti_driver.inductor.codegen import run",
            "export/calls.py:2: imports aoti_driver.inductor.codegen.run: export may import export "
            "itself, base, torch_internals, contract, program, packing, cuda only",
        ),
        (
            "base/files.py",
            "import aoti_driver.contract.dims",
            "base/files.py:1: imports aoti_driver.contract.dims: base may import base itself only",
        ),
        (
            "base/files.py",
            "from ..contract import dims",
            "base/files.py:1: imports ..contract.dims: write the whole name, "
            "aoti_driver.<room>.<module>",
        ),
        (
            "tools.py",
            "",
            "tools.py: a module is in a room, a sub-package of aoti_driver",
        ),
        (
            "tools/lists.py",
            "",
            "tools/lists.py: the room tools is in none of the LAYERS",
        ),
        ("base/files.py", "from aoti_driver.base import errors\nimport torch", None),
        ("verify/points.py", "from aoti_driver.export import calls", None),
    ],
)
def test_what_is_a_violation(tmp_path: Path, file: str, text: str, message: str | None) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    assert list(violations(tmp_path)) == ([message] if message else [])
