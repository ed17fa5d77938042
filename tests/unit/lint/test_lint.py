"""Each linter fails on a violation, and passes without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINT = Path(os.environ.get("LINT", "tools/lint/lint.py")).absolute()
CONFIGURATION = [Path(name).absolute() for name in ("pyproject.toml", ".clang-format")]
BUILDIFIER = os.environ.get("BUILDIFIER", "")

# linter: file, good content, bad content, what the output says of the bad one
CASES = {
    "ruff": ("a.py", "import os\n\nprint(os.sep)\n", "import os\n", "F401"),
    "ruff-format": ("a.py", 'x = {"a": 1}\n', "x = {'a':1}\n", "1 file would be reformatted"),
    "mypy": ("a.py", "x: int = 1\n", "def f(x):\n    return x\n", "no-untyped-def"),
    "clang-format": ("a.cc", "int f() { return 1; }\n", "int f()  {return 1;}\n", "clang-format"),
    "buildifier": ("BUILD.bazel", "exports_files([])\n", "exports_files( [] )\n", "reformat"),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "MODULE.bazel").write_text("module()\n")
    for file in CONFIGURATION:
        shutil.copy(file, tmp_path)
    return tmp_path


def lint(linter: str, workspace: Path) -> subprocess.CompletedProcess[str]:
    options = [f"--root={workspace}/MODULE.bazel"]
    if linter == "buildifier":
        if not BUILDIFIER:
            pytest.skip("no buildifier here")
        options.append(f"--program={BUILDIFIER}")
    return subprocess.run(
        [sys.executable, str(LINT), linter, *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


@pytest.mark.parametrize("linter", CASES)
def test_good(linter: str, workspace: Path) -> None:
    file, good, _, _ = CASES[linter]
    (workspace / file).write_text(good)
    run = lint(linter, workspace)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "are fine" in run.stdout


@pytest.mark.parametrize("linter", CASES)
def test_bad(linter: str, workspace: Path) -> None:
    file, _, bad, message = CASES[linter]
    (workspace / file).write_text(bad)
    run = lint(linter, workspace)
    assert run.returncode == 1
    assert message in run.stdout + run.stderr
    assert f"{linter} found errors in {workspace}. Remedy: " in run.stderr


def test_nothing_to_check_is_an_error(workspace: Path) -> None:
    run = lint("ruff", workspace)
    assert run.returncode == 1
    assert "no files" in run.stderr


def test_ignored_files_are_left_out(workspace: Path) -> None:
    git = shutil.which("git")
    if not git:
        pytest.skip("no git here")
    subprocess.run([git, "init", "-q", str(workspace)], check=True)
    (workspace / ".gitignore").write_text("ignored.py\n")
    (workspace / "ignored.py").write_text("import os\n")
    (workspace / "new.py").write_text("x = 1\n")
    run = lint("ruff", workspace)
    assert run.returncode == 0, run.stdout
    assert "1 files are fine" in run.stdout
