"""What a MODULE.bazel asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from airgap.base import AirgapError
from airgap.modules import asked_versions, find_workspace


def _write(folder: Path, text: str, name: str = "MODULE.bazel") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def test_all_spellings(tmp_path: Path) -> None:
    _write(
        tmp_path,
        """
module(name = "mine", version = "1.0")
# bazel_dep(name = "commented_out", version = "1")
bazel_dep(name = "a", version = "1.1")
bazel_dep("b", "2.2", dev_dependency = True)
bazel_dep(
    name = "c",  # in brackets: )
    repo_name = "other",
    version = "3.3",
)
bazel_dep(name = "without_version")
single_version_override(module_name = "a", version = "1.2")
ext = use_extension("//:x.bzl", "ext")
ext.tag(name = "d", version = "4")
""",
    )
    assert asked_versions([tmp_path]) == {"a": {"1.1", "1.2"}, "b": {"2.2"}, "c": {"3.3"}}


def test_local_and_included_modules(tmp_path: Path) -> None:
    inner = _write(
        tmp_path / "tests/inner",
        'bazel_dep(name = "outer", version = "0")\n'
        'local_path_override(module_name = "outer", path = "../..")\n'
        'include("//sub:more.MODULE.bazel")\n',
    )
    _write(inner / "sub", 'bazel_dep(name = "b", version = "2")', "more.MODULE.bazel")
    _write(
        tmp_path,
        'bazel_dep(name = "a", version = "1")\n'
        'local_path_override(module_name = "inner", path = "tests/inner")\n',
    )
    assert asked_versions([inner]) == {"a": {"1"}, "b": {"2"}}


def test_no_module_file(tmp_path: Path) -> None:
    assert asked_versions([tmp_path]) == {}


def test_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    _write(tmp_path, "module()\nbazel_dep(\n")
    with pytest.raises(AirgapError, match=r"MODULE\.bazel:2:"):
        asked_versions([tmp_path])


def test_nearest_workspace(tmp_path: Path) -> None:
    _write(tmp_path, "")
    inner = _write(tmp_path / "tests/inner", "")
    (inner / "pkg").mkdir()
    assert find_workspace(inner / "pkg") == inner
    assert find_workspace(tmp_path / "tests") == tmp_path
