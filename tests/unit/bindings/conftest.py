"""Makes the driver importable where the tests run outside of Bazel."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
if find_spec("aoti_driver") is None:
    sys.path[:0] = [str(ROOT), str(ROOT / "toolchain" / "driver")]

INCLUDE = ROOT / "runtime" / "include"


@pytest.fixture
def check_cpp(tmp_path: Path) -> Callable[[str, str, str], None]:
    """Compiles a generated header, by its path, and its source, without a warning."""

    def check(path: str, header: str, source: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(header, encoding="utf-8")
        file = tmp_path / "binding.cc"
        file.write_text(source, encoding="utf-8")
        command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", f"-I{INCLUDE}", f"-I{tmp_path}"]
        done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr

    return check
