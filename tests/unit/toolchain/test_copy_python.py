"""The copy of the interpreter that actions run: it needs nothing of the original."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import copy_python

PYTHON = Path(os.environ["PYTHON"]).absolute()
LIBRARY = Path(os.environ["LIBRARY"]).absolute()

PROGRAM = """
import json, sys, ctypes, hashlib, multiprocessing, sqlite3, ssl, unittest.mock
print(json.dumps([sys.prefix, sys.exec_prefix, sys.path, json.__cached__]))
"""


def test_is_its_own_home(tmp_path: Path) -> None:
    # As on a remote worker: files, not links, and no variables.
    (tmp_path / "bin").mkdir()
    shutil.copy(PYTHON, tmp_path / "bin" / "python3")
    shutil.copytree(LIBRARY, tmp_path / LIBRARY.name)
    command = [str(tmp_path / "bin" / "python3"), "-I", "-S", "-B", "-c", PROGRAM]
    result = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    prefix, exec_prefix, path, cached = json.loads(result.stdout)
    assert {prefix, exec_prefix} == {str(tmp_path)}
    assert all(folder.startswith(str(tmp_path)) for folder in path)
    assert Path(cached).exists()


def test_brings_only_what_actions_need() -> None:
    (library,) = LIBRARY.glob("python3.*")
    names = {path.name for path in library.iterdir()}
    assert {"os.py", "json", "lib-dynload"} <= names
    assert not names & {"test", "idlelib", "ensurepip", "site-packages", "dist-packages"}
    assert not list(LIBRARY.rglob("tests"))
    assert not [path for path in LIBRARY.rglob("*") if path.is_symlink()]


def test_a_file_tells_of_every_change(tmp_path: Path) -> None:
    """What a worker is started anew for, in place of the folder."""
    assert len((PYTHON.parents[1] / "python_files.txt").read_text().strip()) == 64
    (tmp_path / "lib").mkdir()
    found = {copy_python.digest(tmp_path)}
    for name, text in [("a.py", "1"), ("a.py", "2"), ("b.py", "2")]:
        (tmp_path / "lib" / name).write_text(text)
        found.add(copy_python.digest(tmp_path))
    (tmp_path / "lib" / "b.py").rename(tmp_path / "lib" / "c.py")
    found.add(copy_python.digest(tmp_path))
    assert len(found) == 5
