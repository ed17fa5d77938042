"""docs/build.svg is what build_picture.py draws, and its actions are those of the rules."""

from __future__ import annotations

import re
from pathlib import Path

from docs import build_picture

ROOT = Path(__file__).resolve().parents[1]
OF_BAZEL = {"CppCompile", "CppLink"}


def test_the_file_is_what_the_script_draws() -> None:
    drawn = (ROOT / "docs/build.svg").read_text(encoding="utf-8")
    assert drawn == build_picture.picture(), "run python docs/build_picture.py"


def test_the_actions_are_those_of_the_rules() -> None:
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").rglob("*.bzl"))
    known = set(re.findall(r'mnemonic = "(\w+)"', rules)) | OF_BAZEL
    drawn = {action.mnemonic for action in build_picture.ACTIONS if action.mnemonic}
    assert drawn - known == set()
    assert len(drawn - OF_BAZEL) > 3


def test_every_change_runs_something() -> None:
    run = "".join(action.changes for action in build_picture.ACTIONS)
    assert set(run) == build_picture.CHANGES.keys()
