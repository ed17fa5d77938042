"""compile_commands.json is written from what `bazel aquery --output=jsonproto` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compile_commands import Command, commands

WORKSPACE = Path("/home/me/rules_aoti")
BASE = Path("/home/me/.cache/bazel/1")


def action(*arguments: str, mnemonic: str = "CppCompile") -> dict[str, Any]:
    return {"mnemonic": mnemonic, "arguments": ["/usr/bin/gcc", *arguments]}


def found(*actions: dict[str, Any]) -> list[Command]:
    return list(commands({"actions": list(actions)}, WORKSPACE, BASE))


def test_a_source_of_the_workspace() -> None:
    arguments = ("-iquote", ".", "-c", "runtime/core/error.cc", "-o", "bazel-out/error.o")
    assert found(action(*arguments)) == [
        Command(str(WORKSPACE), "runtime/core/error.cc", ["/usr/bin/gcc", *arguments])
    ]


def test_paths_of_other_repositories_are_absolute() -> None:
    (command,) = found(
        action(
            "-Iexternal/a/x", "-iquoteexternal/b", "-isystem", "external/c", "-c", "external/d/e.cc"
        )
    )
    assert command.file == f"{BASE}/external/d/e.cc"
    assert command.arguments[1:] == [
        f"-I{BASE}/external/a/x",
        f"-iquote{BASE}/external/b",
        "-isystem",
        f"{BASE}/external/c",
        "-c",
        f"{BASE}/external/d/e.cc",
    ]


def test_a_source_that_is_compiled_twice_has_one_command() -> None:
    first, second = action("-O1", "-c", "a.cc"), action("-O2", "-c", "a.cc")
    assert [command.arguments[1] for command in found(first, second)] == ["-O1"]


def test_other_actions_are_left_out() -> None:
    assert found(action("-c", "a.cc", mnemonic="CppLink"), action("-c"), {}) == []
