"""A C++ program with a model in it runs in a root that holds glibc and nothing else."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

BARE = Path(os.environ["BARE"])
# Parts of glibc itself: https://sourceware.org/glibc/
GLIBC = re.compile(r"(?:ld-linux-[\w-]+|libc|libm|libdl|libpthread|librt)\.so\.\d+")

CLONE_NEWUSER = 0x10000000


def needed(binary: Path) -> list[str]:
    env = {**os.environ, "LC_ALL": "C"}
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", str(binary)],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)


def test_needs_glibc_alone() -> None:
    libraries = needed(BARE)
    assert libraries
    assert [name for name in libraries if not GLIBC.fullmatch(name)] == []


def test_has_no_executable_stack() -> None:
    env = {**os.environ, "LC_ALL": "C"}
    segments = subprocess.run(
        ["readelf", "--program-headers", "--wide", str(BARE)],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (stack,) = [line for line in segments.splitlines() if "GNU_STACK" in line]
    assert "E" not in stack.split("GNU_STACK")[1], stack


def test_runs_in_an_empty_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    program = shutil.copy(BARE, root / "bare")
    resolved = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+\.so\S*)", resolved):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    files = sorted(path.name for path in root.rglob("*") if path.is_file())
    assert all(GLIBC.fullmatch(name) for name in files if name != "bare"), files

    def enter() -> None:
        # Who is not root becomes it in a namespace of its own.
        if os.geteuid() != 0 and ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0:
            raise OSError("neither root nor allowed to make a user namespace")
        os.chroot(root)
        os.chdir("/")

    done = subprocess.run(
        ["/bare"],
        executable="/bare",
        preexec_fn=enter,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.000\n", "")
