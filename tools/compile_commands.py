"""Writes compile_commands.json, from which clangd and other tools know how a file is compiled.

usage: ./bazelw run //tools:compile_commands [-- TARGET ...]

The commands are those that Bazel would run, read from `bazel aquery`. The targets are patterns, by
default //runtime/...; generated headers are found once their targets are built.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DEFAULT_TARGETS = ("//runtime/...",)
_EXTERNAL = re.compile(r"^(-I|-iquote|-isystem|)external/")


@dataclass(frozen=True)
class Command:
    """An entry of compile_commands.json."""

    directory: str
    file: str
    arguments: list[str]


def commands(aquery: dict[str, Any], workspace: Path, output_base: Path) -> Iterator[Command]:
    """The compilations in aquery's JSON, one for each source: of several, the first.

    Bazel compiles in its execution root, a folder of links to the workspace's folders. An editor
    has the workspace's own files open, so commands are written as if run there: `bazel-out` is a
    link in it, and `external/` stands for a folder of the output base.
    """
    seen = set()
    for action in aquery.get("actions", []):
        arguments = action.get("arguments", [])
        if action.get("mnemonic") != "CppCompile" or "-c" not in arguments[:-1]:
            continue
        source = arguments[arguments.index("-c") + 1]
        if source in seen:
            continue
        seen.add(source)
        moved = [
            _EXTERNAL.sub(rf"\1{output_base.as_posix()}/external/", argument)
            for argument in arguments
        ]
        yield Command(workspace.as_posix(), moved[moved.index("-c") + 1], moved)


def _bazel(workspace: Path, *arguments: str) -> str:
    command = [str(workspace / "bazelw"), *arguments]
    result = subprocess.run(command, cwd=workspace, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        sys.exit(f"compile_commands: {' '.join(command)} failed")
    return result.stdout


def main(targets: Sequence[str]) -> None:
    """Writes the file into the workspace."""
    directory = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if directory is None:
        sys.exit("compile_commands: run it as `./bazelw run //tools:compile_commands`")
    workspace = Path(directory)
    query = f'mnemonic("CppCompile", deps({" + ".join(targets or DEFAULT_TARGETS)}))'
    output_base = Path(_bazel(workspace, "info", "output_base").strip())
    aquery = json.loads(_bazel(workspace, "aquery", "--output=jsonproto", query))
    found = [asdict(command) for command in commands(aquery, workspace, output_base)]
    path = workspace / "compile_commands.json"
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(f"{path}: {len(found)} files")


if __name__ == "__main__":
    main(sys.argv[1:])
