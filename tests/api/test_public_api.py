"""The public API is the one that is written down: it grows and shrinks on purpose alone."""

import difflib
from pathlib import Path

from tests.api import public_api

ROOT = Path(__file__).resolve().parents[2]


def _targets(folder: Path, text: str) -> set[str]:
    file = folder / "BUILD.bazel"
    file.write_text(text, encoding="utf-8")
    return public_api.Targets(file, folder).public


def test_the_public_api_is_the_one_that_is_written_down() -> None:
    written = (ROOT / public_api.LIST).read_text(encoding="utf-8")
    found = public_api.public_api(ROOT)
    difference = difflib.unified_diff(
        written.splitlines(), found.splitlines(), public_api.LIST, "the sources", lineterm=""
    )
    update = "If that is meant: ./bazelw run //tests/api:update"
    assert found == written, "\n".join(["The public API has changed.", *difference, update])


def test_targets_are_public_by_their_own_visibility(tmp_path: Path) -> None:
    found = _targets(
        tmp_path,
        'load(":x.bzl", "library")\n'
        'library(name = "mine")\n'
        '[library(name = "one_" + n, visibility = ["//visibility:public"]) for n in ["a", "b"]]\n',
    )
    assert found == {"one_a", "one_b"}


def test_targets_are_public_by_the_default_of_the_package(tmp_path: Path) -> None:
    found = _targets(
        tmp_path,
        'package(default_visibility = ["//visibility:public"])\n'
        'library(name = "all")\n'
        'library(name = "mine", visibility = ["//visibility:private"])\n',
    )
    assert found == {"all"}


def test_targets_are_named_by_tables(tmp_path: Path) -> None:
    (tmp_path / "tables.bzl").write_text('T = {"a": [1] + [2], "b": []}', encoding="utf-8")
    (tmp_path / "rules.bzl").write_text('T = dict(a = "b")', encoding="utf-8")
    loop = '[library(name = n, visibility = ["//visibility:public"]) for n in T]\n'
    assert _targets(tmp_path, 'load("//:tables.bzl", "T")\n' + loop) == {"a", "b"}
    assert _targets(tmp_path, 'load("//:tables.bzl", U = "T")\nT = U\n' + loop) == {"a", "b"}
    assert _targets(tmp_path, 'load("//:rules.bzl", "T")\n' + loop) == set()


def test_exported_files_are_public_unless_a_visibility_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    found = _targets(
        tmp_path,
        'package(default_visibility = ["//visibility:private"])\n'
        'exports_files(glob(["*.txt"]))\n'
        'exports_files(["b"], visibility = ["//:__subpackages__"])\n',
    )
    assert found == {"a.txt"}


def test_folders_with_a_module_of_their_own_are_left_out(tmp_path: Path) -> None:
    for folder in ["", "here", "other", "other/below"]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "BUILD.bazel").write_text('exports_files(["x"])', encoding="utf-8")
    (tmp_path / "other/MODULE.bazel").touch()
    assert public_api.public_targets(tmp_path) == ["//:x", "//here:x"]


def test_public_headers_name_nothing_internal() -> None:
    headers = {
        name: file.read_text("utf-8") for name, file in public_api.public_headers(ROOT).items()
    }
    assert "aoti/model.h" in headers
    assert not [name for name, text in headers.items() if "internal" in text]
