"""Runs one linter over the files of the workspace, and fails if it finds anything.

The files are those that git tracks or would track, so a new one is checked before it is committed.
Bazel can't know that list, so the tests that run this are local and never cached.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

_LEFT_OUT = {".git", "__pycache__", "node_modules"}


def _walk(root: Path) -> Iterable[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name for name in folders if name not in _LEFT_OUT and not name.startswith("bazel-")
        ]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def workspace_files(root: Path) -> list[str]:
    """The files of the workspace, relative to `root`; without git, whatever lies there."""
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    names = listing.stdout.decode().split("\0") if listing.returncode == 0 else _walk(root)
    return sorted(name for name in names if name and (root / name).is_file())


def python_files(names: Iterable[str]) -> list[str]:
    """Python sources; bazelw is one without saying so."""
    return [name for name in names if name.endswith((".py", ".pyi")) or name == "bazelw"]


def cpp_files(names: Iterable[str]) -> list[str]:
    """C++ sources and headers."""
    return [name for name in names if name.endswith((".h", ".cc", ".cpp", ".inc"))]


def starlark_files(names: Iterable[str]) -> list[str]:
    """Everything that Bazel reads."""
    exact = ("BUILD", "BUILD.bazel", "MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel")
    return [name for name in names if name.endswith(".bzl") or name.rpartition("/")[2] in exact]


def _package_folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"lint: the Python package {package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


def _program(package: str, *places: str) -> str:
    """A program that a wheel brings; `places` are relative to the folder the package lies in."""
    site = _package_folder(package).parent
    for place in (*places, f"../../../bin/{package}"):  # the latter in a virtual environment
        program = site / place
        if program.is_file():
            return str(program)
    sys.exit(f"lint: the package {package} in {site} brings no program")


def _ruff(_: str) -> list[str]:
    return [_program("ruff", "bin/ruff"), "check", "--no-cache"]


def _ruff_format(_: str) -> list[str]:
    return [_program("ruff", "bin/ruff"), "format", "--no-cache"]


def _mypy(_: str) -> list[str]:
    # What the checked code imports lies beside mypy, or where this interpreter finds it.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return [sys.executable, "-m", "mypy", f"--cache-dir={tempfile.mkdtemp()}"]


def _clang_format(_: str) -> list[str]:
    return [_program("clang_format", "clang_format/data/bin/clang-format")]


def _buildifier(program: str) -> list[str]:
    return [str(Path(program).absolute())]


@dataclass(frozen=True)
class Linter:
    """Which files a linter reads, and how it is called; the command takes --program's value.

    A linter with `fix` is a formatter too: these arguments make it correct what it finds.
    """

    files: Callable[[Iterable[str]], list[str]]
    command: Callable[[str], list[str]]
    check: tuple[str, ...]
    fix: tuple[str, ...]
    remedy: str


_FORMAT = "./bazelw run //tools:format"

LINTERS = {
    "ruff": Linter(python_files, _ruff, (), (), "ruff check --fix"),
    "ruff-format": Linter(python_files, _ruff_format, ("--check",), ("--quiet",), _FORMAT),
    "mypy": Linter(python_files, _mypy, (), (), "add or correct type annotations"),
    "clang-format": Linter(cpp_files, _clang_format, ("--dry-run", "-Werror"), ("-i",), _FORMAT),
    "buildifier": Linter(
        starlark_files, _buildifier, ("-mode=check", "-lint=warn"), ("-lint=fix",), _FORMAT
    ),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("linter", choices=LINTERS)
    parser.add_argument("--root", required=True, help="a file (or a link to one) in the workspace")
    parser.add_argument("--program", default="", help="the linter's program, if no wheel brings it")
    arguments = parser.parse_args()
    linter = LINTERS[arguments.linter]
    command = [*linter.command(arguments.program), *linter.check]
    root = Path(arguments.root).resolve().parent
    files = linter.files(workspace_files(root))
    if not files:
        sys.exit(f"lint: no files for {arguments.linter} in {root}")
    result = subprocess.run([*command, *files], cwd=root, check=False)
    if result.returncode:
        sys.exit(f"\n{arguments.linter} found errors in {root}. Remedy: {linter.remedy}")
    print(f"{arguments.linter}: {len(files)} files are fine")


if __name__ == "__main__":
    main()
