"""The script that tries other rulesets: which versions it takes, and what it runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import try_rulesets


def registry(folder: Path, versions: list[str], yanked: dict[str, str] | None = None) -> str:
    listing = folder / "modules" / "rules_cc" / "metadata.json"
    listing.parent.mkdir(parents=True)
    listing.write_text(json.dumps({"versions": versions, "yanked_versions": yanked or {}}))
    return folder.as_uri()


def test_newest_is_a_release(tmp_path: Path) -> None:
    versions = ["0.2.9", "0.2.22", "0.3.0", "0.10.0-rc1", "0.2.1"]
    url = registry(tmp_path, versions, {"0.3.0": "broken"})
    assert try_rulesets.newest(url, "rules_cc") == "0.2.22"


def test_no_release(tmp_path: Path) -> None:
    url = registry(tmp_path, ["1.0.0-rc1"])
    with pytest.raises(SystemExit, match="has no release of rules_cc"):
        try_rulesets.newest(url, "rules_cc")


def test_versions_are_replaced() -> None:
    text = (
        'bazel_dep(name = "rules_cc", version = "0.2.14")\n'
        'bazel_dep(name = "rules_cc_extra", version = "1")\n'
        'bazel_dep(name = "rules_python", version = "1.7.0", dev_dependency = True)\n'
    )
    assert try_rulesets.with_versions(text, {"rules_cc": "9", "rules_python": "2.3.2"}) == (
        'bazel_dep(name = "rules_cc", version = "9")\n'
        'bazel_dep(name = "rules_cc_extra", version = "1")\n'
        'bazel_dep(name = "rules_python", version = "2.3.2", dev_dependency = True)\n'
    )


@pytest.mark.parametrize(("version", "flags"), [("7.7.1", True), ("8.4.2", False)])
def test_only_bazel_7_needs_flags(version: str, flags: bool) -> None:
    found = try_rulesets.commands("bazel", version, "https://r", ["--config=x"], False)
    assert [name for name, _, _ in found] == ["analysis of //...", "tests/e2e/smoke"]
    for _, _, command in found:
        assert (f"--bazelrc={try_rulesets.FLAGS}" in command) is flags
        assert {"--registry=https://r", "--config=x", "//..."} <= set(command)
    assert len(try_rulesets.commands("bazel", version, "https://r", [], True)) == 1


@pytest.mark.parametrize(("keep", "ending"), [(True, "shutdown"), (False, "clean --expunge")])
def test_no_server_is_left(keep: bool, ending: str, tmp_path: Path) -> None:
    bazel = tmp_path / "bazel"
    bazel.write_text('#!/bin/sh\necho "$*" >> commands\n[ "$1" != test ]\n', encoding="utf-8")
    bazel.chmod(0o755)
    assert try_rulesets.run([str(bazel), "test", "//..."], tmp_path, keep) == 1
    assert (tmp_path / "commands").read_text(encoding="utf-8") == f"test //...\n{ending}\n"


def test_row() -> None:
    versions = {"rules_cc": "0.2", "rules_python": "2.3"}
    codes = {"analysis": 0, "smoke": 3}
    assert try_rulesets.row("8.4.2", versions, codes) == (
        "| 8.4.2 | 2.3 | 0.2 | analysis: passes; smoke: failed |"
    )
    assert try_rulesets.row("7.7.1", versions, codes).startswith(
        "| 7.7.1 with newer Bazels' defaults | "
    )


def test_flags_are_one_a_line() -> None:
    lines = try_rulesets.FLAGS.read_text(encoding="utf-8").splitlines()
    flags = [line for line in lines if not line.startswith("#")]
    assert len(flags) >= 10
    assert [f for f in flags if not re.fullmatch(r"(build|common) --\w+(=\w+)?", f)] == []
