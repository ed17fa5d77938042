"""Unpacking of packages made here, by hand."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from airgap.base import AirgapError
from airgap.deb import unpack


def _deb(tmp_path: Path, *members: tuple[str, str, str]) -> Path:
    """A package of files ("file", name, content) and links ("link", name, target)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for kind, name, value in members:
            info = tarfile.TarInfo(name)
            if kind == "link":
                info.type, info.linkname = tarfile.SYMTYPE, value
                tar.addfile(info)
            else:
                info.size, info.mode = len(value), 0o600
                tar.addfile(info, io.BytesIO(value.encode()))
    out = b"!<arch>\n"
    for part, body in (("debian-binary", b"2.0"), ("data.tar.xz", data.getvalue())):
        out += f"{part:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n".encode()
        out += body + b"\n" * (len(body) % 2)
    file = tmp_path / "x.deb"
    file.write_bytes(out)
    return file


def test_files_and_links(tmp_path: Path) -> None:
    deb = _deb(
        tmp_path,
        ("file", "./usr/share/java/a.jar", "jar"),
        ("link", "./usr/share/java/b.jar", "/usr/share/java/a.jar"),
        ("file", "./usr/share/doc/a/README", "left out"),
        ("file", "./usr/bin/bazel", "kept"),
        ("file", "./usr/bin/other", "left out"),
    )
    root = tmp_path / "root"
    unpack(deb, root)
    assert (root / "usr/share/java/b.jar").read_text() == "jar"
    assert not os.readlink(root / "usr/share/java/b.jar").startswith("/")
    assert (root / "usr/share/java/a.jar").stat().st_mode & 0o444 == 0o444
    assert (root / "usr/bin/bazel").exists()
    assert not (root / "usr/bin/other").exists()
    assert not (root / "usr/share/doc").exists()


def test_member_outside_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AirgapError, match="evil"):
        unpack(_deb(tmp_path, ("file", "./usr/../../evil", "")), tmp_path / "root")
    assert not (tmp_path / "evil").exists()


def test_not_a_package(tmp_path: Path) -> None:
    (tmp_path / "x.deb").write_bytes(b"<html>")
    with pytest.raises(AirgapError, match="not a Debian package"):
        unpack(tmp_path / "x.deb", tmp_path / "root")
