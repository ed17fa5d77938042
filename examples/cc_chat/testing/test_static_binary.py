"""The static program: what it weighs without its weights, and what it asks of the machine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

PROGRAM = Path(os.environ["TEST_SRCDIR"], os.environ["CC_CHAT_STATIC"])
# Parts of glibc itself.
GLIBC = re.compile(r"(?:ld-linux-[\w-]+|libc|libm|libdl|libpthread|librt)\.so\.\d+")


def test_weighs_little(tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "--strip-all", "-o", stripped, PROGRAM], check=True)
    assert stripped.stat().st_size <= int(os.environ["LIMIT"])


def test_needs_glibc_alone() -> None:
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", PROGRAM],
        env={**os.environ, "LC_ALL": "C"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    assert libraries
    assert [name for name in libraries if not GLIBC.fullmatch(name)] == []


def test_runs() -> None:
    said = subprocess.run([PROGRAM, "--help"], check=True, capture_output=True, text=True).stdout
    assert "cc_chat" in said
