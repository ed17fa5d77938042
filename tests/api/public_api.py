"""The public API of rules_aoti: what other modules may load, depend on and include.

usage: public_api.py --root=FILE_IN_THE_WORKSPACE           prints it
       public_api.py --root=FILE_IN_THE_WORKSPACE --update  writes tests/api/public_api.txt
"""

import argparse
import ast
import builtins
import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIST = "tests/api/public_api.txt"

# The packages whose Starlark files are for users.
_STARLARK_PACKAGES = ["rules", "runtime", "toolchain"]

_PUBLIC = "//visibility:public"

_HEADER = """\
# The public API of rules_aoti, and nothing else: //tests/api:public_api_test compares it with the sources.
# Update it with: ./bazelw run //tests/api:update
"""  # noqa: E501


class _Unknown:
    """A value that a BUILD file loads: a macro, a rule, or a constant that stays empty."""

    def __init__(self, targets: "Targets") -> None:
        self._targets = targets

    def __call__(self, *_args: Any, **kwargs: Any) -> "_Unknown":
        self._targets.add(kwargs.get("name"), kwargs.get("visibility"))
        return self

    def __getattr__(self, _name: str) -> "_Unknown":
        return self

    def __getitem__(self, _key: Any) -> "_Unknown":
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __add__(self, _other: Any) -> "_Unknown":
        return self

    __radd__ = __or__ = __ror__ = __mod__ = __add__


class _Python(ast.NodeTransformer):
    """Makes Python of Starlark, where the two differ."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """A dict's keys(), values() and items() are lists in Starlark."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "values", "items"):
            return ast.Call(ast.Name("list", ast.Load()), [node], [])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """What a loaded function returns, `a, b = f()`, is not known: a and b are the same."""
        self.generic_visit(node)
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call):
            node.value = ast.List([node.value] * len(node.targets[0].elts), ast.Load())
        return node


class Targets:
    """The public targets of a BUILD file, which is run as if it were Python."""

    def __init__(self, build_file: Path, root: Path) -> None:
        self._folder = build_file.parent
        self._default: list[str] = []
        self.public: set[str] = set()
        code = ast.parse(build_file.read_text(encoding="utf-8"), str(build_file))
        loads = [node for node in map(_load, code.body) if node is not None]
        loaded = {name: value for load in loads for name, value in _loaded(load, root).items()}
        code.body = [node for node in code.body if _load(node) is None]
        code = ast.fix_missing_locations(_Python().visit(code))
        names = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
        known = {"exports_files": self._exports_files, "glob": self._glob, "package": self._package}
        unknown = {name: _Unknown(self) for name in names if not hasattr(builtins, name)}
        exec(compile(code, str(build_file), "exec"), {**unknown, **loaded, **known})

    def add(self, name: Any, visibility: Any) -> None:
        """Takes note of a target."""
        if isinstance(name, str) and _PUBLIC in (visibility or self._default):
            self.public.add(name)

    def _exports_files(self, files: list[str], visibility: list[str] | None = None) -> None:
        # Without a visibility, exported files are public whatever the package's default is.
        for file in files:
            self.add(file, visibility or [_PUBLIC])

    def _glob(self, patterns: list[str], **_kwargs: Any) -> list[str]:
        found = {file for pattern in patterns for file in self._folder.glob(pattern)}
        return sorted(file.relative_to(self._folder).as_posix() for file in found)

    def _package(self, default_visibility: list[str] | None = None, **_kwargs: Any) -> None:
        self._default = default_visibility or []


def _load(node: ast.stmt) -> ast.Call | None:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    return call if call.func.id == "load" else None


def _loaded(load: ast.Call, root: Path) -> dict[str, Any]:
    """The values that a BUILD file loads from a table: a file of this module without any call."""
    label, *names = [ast.literal_eval(argument) for argument in load.args]
    file = root / label.replace(":", "/").lstrip("/")
    if not label.startswith("//") or not file.is_file():
        return {}
    code = ast.parse(file.read_text(encoding="utf-8"), str(file))
    if any(isinstance(node, (ast.Call, ast.FunctionDef)) for node in ast.walk(code)):
        return {}
    values = runpy.run_path(str(file))
    renamed = {str(word.arg): ast.literal_eval(word.value) for word in load.keywords}
    return {name: values[old] for name, old in ({n: n for n in names} | renamed).items()}


def _build_files(root: Path) -> list[Path]:
    """Those of this module: a folder with a MODULE.bazel is another one."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not Path(folder, f, "MODULE.bazel").exists()]
        if "BUILD.bazel" in files:
            found.append(Path(folder, "BUILD.bazel"))
    return sorted(found)


def public_targets(root: Path) -> list[str]:
    """Labels of targets that every module may depend on."""
    labels = [
        f"//{'' if file.parent == root else file.parent.relative_to(root).as_posix()}:{name}"
        for file in _build_files(root)
        for name in Targets(file, root).public
    ]
    return sorted(labels)


def public_symbols(root: Path) -> list[str]:
    """What a user can load: the file and the symbol."""
    symbols = []
    for package in _STARLARK_PACKAGES:
        for file in (root / package).glob("*.bzl"):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign):
                    names = [
                        n.id
                        for target in node.targets
                        for n in ast.walk(target)
                        if isinstance(n, ast.Name)
                    ]
                elif isinstance(node, ast.FunctionDef):
                    names = [node.name]
                else:
                    continue
                label = f"//{package}:{file.name}"
                symbols += [f"{label} {name}" for name in names if not name.startswith("_")]
    return sorted(symbols)


def public_headers(root: Path) -> dict[str, Path]:
    """What a C++ user can include, and the file of each."""
    parts = ("runtime", "runtime/cuda", "runtime/operators")
    folders = [root / part / "include" for part in parts]
    return {
        file.relative_to(folder).as_posix(): file
        for folder in folders
        for file in folder.glob("**/*.h")
    }


def public_api(root: Path) -> str:
    """The text of the list."""
    parts = {
        "Starlark": public_symbols(root),
        "Targets": public_targets(root),
        "C++ headers": sorted(public_headers(root)),
    }
    return _HEADER + "".join(
        f"\n# {title}\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts.items()
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--root", type=Path, required=True, help="a file (or a link to one) in the workspace"
    )
    parser.add_argument("--update", action="store_true", help=f"write {LIST}")
    arguments = parser.parse_args()
    root = arguments.root.resolve().parent
    text = public_api(root)
    if arguments.update:
        (root / LIST).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
