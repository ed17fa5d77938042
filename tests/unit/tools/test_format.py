"""//tools:format corrects what the linters of //tools/lint find, with the same settings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from format import format_files

CONFIGURATION = [Path(name).absolute() for name in ("pyproject.toml", ".clang-format")]
BUILDIFIER = Path(os.environ["BUILDIFIER"]).absolute()

# file: badly formatted content, well formatted content
CASES = {
    "a.py": ("x = {'a':1}\n", 'x = {"a": 1}\n'),
    "a.cc": ("int f()  {return 1;}\n", "int f() { return 1; }\n"),
    "BUILD.bazel": ("exports_files( [] )\n", "exports_files([])\n"),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for file in CONFIGURATION:
        shutil.copy(file, tmp_path)
    for name, (bad, _) in CASES.items():
        (tmp_path / name).write_text(bad)
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_formats(name: str, workspace: Path) -> None:
    if name == "BUILD.bazel" and not BUILDIFIER.stat().st_size:
        pytest.skip("no buildifier here")
    assert format_files(workspace, [name], BUILDIFIER) == 0
    assert {file: (workspace / file).read_text() for file in CASES} == {
        file: good if file == name else bad for file, (bad, good) in CASES.items()
    }


def test_without_buildifier(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (workspace / "empty").touch()
    assert format_files(workspace, CASES, workspace / "empty") == 0
    assert "buildifier: left out" in capfd.readouterr().out
    assert (workspace / "a.py").read_text() == CASES["a.py"][1]
    assert (workspace / "BUILD.bazel").read_text() == CASES["BUILD.bazel"][0]


def test_a_file_that_cannot_be_read_is_a_failure(workspace: Path) -> None:
    (workspace / "a.py").write_text("def\n")
    assert format_files(workspace, ["a.py"], BUILDIFIER) == 1
