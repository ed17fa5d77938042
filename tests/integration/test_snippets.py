"""The Starlark in README and docs has all its loads: pasted, no name is undefined.

It parses, and each rule that it calls is loaded there, or above on the page, from where it is.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from tests.integration import stranger

ROOT = Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
PAGES = {path: (ROOT / path).read_text(encoding="utf-8") for path in os.environ["PAGES"].split()}
STARLARK = {
    path: [each.text for each in stranger.snippets(page) if each.language == "starlark"]
    for path, page in PAGES.items()
}
# What MODULE.bazel and BUILD files know without a load, in Bazel 9 too.
BUILTIN = {
    *("archive_override", "bazel_dep", "local_path_override", "module", "register_toolchains"),
    *("use_extension", "use_repo", "use_repo_rule"),
    *("alias", "config_setting", "constraint_value", "exports_files", "filegroup", "genrule"),
    *("glob", "load", "package", "platform", "select", "test_suite", "toolchain"),
    *("Label", "dict", "fail", "len", "list", "range", "str"),
}


def parsed(text: str) -> ast.Module:
    """A snippet's syntax tree: Starlark is Python here.

    `...` stands for what is left out, and a snippet that is indented for arguments of a call.
    """
    text = re.sub(r"^\s*\.\.\.,?\n|, \.\.\.(?=\))", "", text, flags=re.MULTILINE)
    return ast.parse(f"dict(\n{text})" if text.startswith(" ") else text)


def calls(tree: ast.Module, name: str = "") -> list[tuple[str, ast.Call]]:
    """The calls of plain functions, or of the one that is named."""
    return [
        (node.func.id, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in (name or node.func.id,)
    ]


def loads(tree: ast.Module) -> dict[str, str]:
    """The names that a snippet loads, and from where."""
    found = {}
    for _, call in calls(tree, "load"):
        label, *names = [ast.literal_eval(argument) for argument in call.args]
        found.update(dict.fromkeys(names, label))
        found.update({word.arg: label for word in call.keywords if word.arg})
    return found


def undefined(snippets: list[str]) -> set[str]:
    """The names that are called and were neither loaded nor defined before."""
    known = set(BUILTIN)
    missing = set()
    for text in snippets:
        tree = parsed(text)
        known |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        known |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and stored(node)}
        known |= loads(tree).keys()
        missing |= {name for name, _ in calls(tree)} - known
    return missing


def stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


@pytest.mark.parametrize("page", STARLARK)
def test_loads_what_it_calls(page: str) -> None:
    assert undefined(STARLARK[page]) == set()


@pytest.mark.parametrize("page", STARLARK)
def test_loads_what_there_is(page: str) -> None:
    for text in STARLARK[page]:
        for name, label in loads(parsed(text)).items():
            repository, _, rest = label.partition("//")
            if repository == "@rules_aoti":
                file = (ROOT / rest.replace(":", "/")).read_text(encoding="utf-8")
                assert re.search(rf"^(def )?{name}\b", file, re.MULTILINE), f"{name} of {label}"


def test_the_test_finds_what_is_missing() -> None:
    load = 'load("@x//:y.bzl", "z")\n'
    assert undefined(['cc_binary(name = "a", deps = glob(["*"]))']) == {"cc_binary"}
    assert undefined([load, 'z(\n    name = "a",\n    ...\n)\n']) == set()
    assert undefined(['z(name = "a", ...)', load]) == {"z"}
    assert sum(map(len, STARLARK.values())) > 20
