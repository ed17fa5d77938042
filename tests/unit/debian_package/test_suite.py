"""Programs from Debian's packages, without a mirror."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from airgap.base import AirgapError
from airgap.fetch import Fetcher
from debian_package.suite import Suite, extract


def deb(path: Path, files: dict[str, bytes], links: dict[str, str]) -> Path:
    """A package with these files, as dpkg-deb writes it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo("./" + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, target in links.items():
            member = tarfile.TarInfo("./" + name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    data = content.getvalue()
    header = f"{'data.tar':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    path.write_bytes(b"!<arch>\n" + header + data)
    return path


def test_extracts_what_is_asked_for(tmp_path: Path) -> None:
    package = deb(
        tmp_path / "qemu.deb",
        {"usr/bin/qemu-aarch64": b"emulator", "usr/bin/qemu-mips": b"?", "etc/passwd": b"?"},
        {},
    )
    found = extract(package, "usr/bin", tmp_path / "bin", ["qemu-aarch64"])
    assert found == ["qemu-aarch64"]
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["qemu-aarch64"]
    assert (tmp_path / "bin" / "qemu-aarch64").stat().st_mode & 0o777 == 0o755


def test_links_become_files(tmp_path: Path) -> None:
    package = deb(tmp_path / "c.deb", {"lib/libc.so": b"library"}, {"lib/libc.so.6": "libc.so"})
    extract(package, "lib", tmp_path / "lib")
    assert (tmp_path / "lib" / "libc.so.6").read_bytes() == b"library"


def test_a_package_that_is_gone(tmp_path: Path) -> None:
    suite = Suite("trixie", "https://example.com/debian", {}, Fetcher(tmp_path))
    with pytest.raises(AirgapError, match="Debian trixie has no package qemu-user"):
        suite.deb("qemu-user")
