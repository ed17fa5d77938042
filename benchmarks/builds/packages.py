"""A copy of the source tree, and packages in it that declare the models anew.

A model in a new package is new to every cache, while all that it is built with is there already:
what a monorepo builds when somebody adds a model.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.builds.client import Bazel

# What aoti_model takes of a torch_export.
_ATTRIBUTES = (
    "module",
    "entry_point",
    "weights",
    "inputs",
    "sample_inputs",
    "dynamic_dims",
    "strict",
    "decompositions",
)
_LOADS = """\
load("@rules_python//python:defs.bzl", "py_binary")
load("//rules:defs.bzl", "aoti_model")
"""
_PROGRAM_SOURCE = "program.py"


def copy_tree(source: Path, target: Path) -> None:
    """The source tree without files that are not sources."""
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns(
        "bazel-*", ".git", "__pycache__", ".*_cache", "*results", "user.bazelrc"
    )
    shutil.copytree(source, target, ignore=ignored, symlinks=True)


def declared(bazel: Bazel, label: str) -> dict[str, Any]:
    """The attributes of a torch_export, as its BUILD file gives them."""
    text = bazel.output("query", "--output=build", label)
    (rule,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return {
        keyword.arg: ast.literal_eval(keyword.value)
        for keyword in rule.keywords
        if keyword.arg in _ATTRIBUTES
    }


def declare(tree: Path, package: str, models: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """Writes a package of models, each with a Python program; returns the models' labels."""
    folder = tree / package
    folder.mkdir(parents=True)
    rules, labels = [_LOADS], []
    for name, attributes in models:
        lines = [f"    {key} = {value!r},\n" for key, value in attributes.items()]
        rules.append(f'\naoti_model(\n    name = "{name}",\n{"".join(lines)})\n')
        labels.append(f"//{package}:{name}")
        rules.append(
            f'\npy_binary(\n    name = "{program(name)}",\n    srcs = ["{_PROGRAM_SOURCE}"],\n'
            f'    main = "{_PROGRAM_SOURCE}",\n    deps = [":{name}"],\n)\n'
        )
    (folder / _PROGRAM_SOURCE).write_text("", encoding="utf-8")
    (folder / "BUILD.bazel").write_text("".join(rules), encoding="utf-8")
    return labels


def program(label: str) -> str:
    """The Python program of a model that `declare` declared."""
    return f"{label}_program"
