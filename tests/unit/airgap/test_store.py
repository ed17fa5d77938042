"""Directories are whole or absent: with two runs at once, and when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from airgap import store

# Builds slowly: says when half of it is there, and leaves a line for each build.
_BUILDER = """
import sys, time
from pathlib import Path
from airgap.store import locked, make_directory

cache = Path(sys.argv[1])

def build(place):
    with (cache / "builds").open("a") as log:
        log.write("built\\n")
    (place / "first").write_text("x")
    time.sleep(float(sys.argv[2]))
    (place / "second").write_text("x")

with locked(cache / "lock"):
    make_directory(cache / "final", build)
"""


def _start(cache: Path, seconds: float) -> subprocess.Popen[str]:
    tools = Path(store.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", _BUILDER, str(cache), str(seconds)],
        env={**os.environ, "PYTHONPATH": str(tools)},
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} does not appear"
        time.sleep(0.01)


def _builds(cache: Path) -> int:
    return len((cache / "builds").read_text().splitlines())


def test_killed_run_leaves_nothing_half(tmp_path: Path) -> None:
    first = _start(tmp_path, 600)
    _wait_for(tmp_path / "final.tmp/first")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert not (tmp_path / "final").exists()
    (tmp_path / "final.tmp/leftover").write_text("x")
    second = _start(tmp_path, 0)
    second.communicate(timeout=20)
    assert sorted(path.name for path in (tmp_path / "final").iterdir()) == ["first", "second"]
    assert not (tmp_path / "final.tmp").exists()
    assert _builds(tmp_path) == 2


def test_second_run_waits_for_the_first(tmp_path: Path) -> None:
    first = _start(tmp_path, 1)
    _wait_for(tmp_path / "final.tmp/first")
    second = _start(tmp_path, 0)
    _, message = second.communicate(timeout=20)
    assert "waiting" in message
    first.communicate(timeout=20)
    assert (first.returncode, second.returncode) == (0, 0)
    assert (tmp_path / "final/second").exists()
    assert _builds(tmp_path) == 1


def test_digest_tells_parts_apart() -> None:
    assert store.digest([b"ab", b"c"]) != store.digest([b"a", b"bc"])
    assert store.digest([b"a"]) == store.digest([b"a"])


def test_written_file_leaves_no_temporary(tmp_path: Path) -> None:
    store.write_file(tmp_path / "a/b", b"1")
    store.write_file(tmp_path / "a/b", b"2")
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "a").iterdir()] == [("b", b"2")]
