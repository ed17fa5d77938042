"""The hooks of pre-commit run the versions of the programs that the locks have."""

from __future__ import annotations

import re
from pathlib import Path

HOOKS = Path(".pre-commit-config.yaml").read_text(encoding="utf-8")
LOCK = Path("tools/requirements_dev.txt").read_text(encoding="utf-8")
BUILDIFIER = Path("tools/lint/buildifier.bzl").read_text(encoding="utf-8")


def test_python_packages_are_those_of_the_lock() -> None:
    pinned = re.findall(r'"([\w-]+==[\w.]+)"', HOOKS)
    assert {each.partition("==")[0] for each in pinned} == {"ruff", "clang-format"}
    assert [each for each in pinned if f"\n{each} " not in LOCK] == []


def test_buildifier_is_that_of_the_lint_tests() -> None:
    version = re.search(r'^_VERSION = "(.*)"$', BUILDIFIER, re.MULTILINE)
    assert version
    assert f'"@bazel/buildifier@{version[1]}"' in HOOKS
