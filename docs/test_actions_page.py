"""The page of actions knows every mnemonic that the rules name."""

import re
from pathlib import Path

from docs import actions_page

ROOT = Path(__file__).resolve().parents[1]
OF_BAZEL = {"CppArchive", "CppCompile", "CppLink"}


def test_the_page_has_the_mnemonics_of_the_rules() -> None:
    files = [*ROOT.glob("rules/private/*.bzl"), *ROOT.glob("toolchain/private/*.bzl")]
    named = {
        mnemonic
        for file in files
        for mnemonic in re.findall(r'mnemonic = "(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert named == actions_page.PURPOSES.keys() - OF_BAZEL
