"""What was built for AArch64 is for AArch64, uses its vectors, and needs glibc alone."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

RUNFILES = Path(os.environ["RUNFILES_DIR"])
CHAT_TOKENS = RUNFILES / os.environ["CHAT_TOKENS"]
FUNCTIONS_LIBRARY = RUNFILES / os.environ["FUNCTIONS_LIBRARY"]

EM_AARCH64 = 183
# fmul v0.4s, v1.4s, v2.4s; whatever the registers are
FMUL_4S_MASK, FMUL_4S = 0xFFE0FC00, 0x6E20DC00
GLIBC = re.compile(r"(?:ld-linux-[\w-]+|libc|libm|libdl|libpthread|librt)\.so\.\d+")


def machine(content: bytes) -> int:
    assert content[:4] == b"\x7fELF"
    (number,) = struct.unpack_from("<H", content, 18)
    return int(number)


def readelf(*arguments: str | Path) -> str:
    return subprocess.run(
        ["readelf", "--wide", *arguments],
        env={**os.environ, "LC_ALL": "C"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def members(archive: bytes) -> list[bytes]:
    """The object files of an archive."""
    found, at = [], 8
    while at < len(archive):
        size = int(archive[at + 48 : at + 58])
        content = archive[at + 60 : at + 60 + size]
        if content[:4] == b"\x7fELF":
            found.append(content)
        at += 60 + size + size % 2
    return found


def test_program_is_for_aarch64() -> None:
    assert machine(CHAT_TOKENS.read_bytes()) == EM_AARCH64


def test_program_needs_glibc_alone() -> None:
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic", CHAT_TOKENS))
    assert libraries
    assert [name for name in libraries if not GLIBC.fullmatch(name)] == []


def test_program_needs_no_newer_glibc_than_it_says() -> None:
    needed = re.findall(r"GLIBC_2\.(\d+)", readelf("--version-info", CHAT_TOKENS))
    assert needed
    assert max(map(int, needed)) <= 28


def test_kernels_use_neon() -> None:
    objects = members(FUNCTIONS_LIBRARY.read_bytes())
    assert objects
    assert {machine(content) for content in objects} == {EM_AARCH64}
    words = [
        word
        for content in objects
        for (word,) in struct.iter_unpack("<I", content[: len(content) & ~3])
    ]
    assert sum(word & FMUL_4S_MASK == FMUL_4S for word in words) >= 4
