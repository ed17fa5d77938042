"""Unpacking of .deb files without dpkg's database."""

from __future__ import annotations

import io
import os
import posixpath
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from .base import AirgapError

# Only what Bazel needs at run time.
_LEFT_OUT = re.compile(
    r"(usr/share/(doc|man|lintian|locale|maven-repo|bash-completion|zsh|doc-base)"
    r"|usr/include|etc|var|usr/lib/x86_64-linux-gnu/gconv|usr/bin/(?!bazel$)[^/]+|usr/sbin)(/|$)"
)


def data_tar(deb: Path) -> bytes:
    """The (perhaps compressed) tar of the files that a package installs."""
    content = deb.read_bytes()
    if content[:8] != b"!<arch>\n":
        raise AirgapError(f"{deb}: not a Debian package")
    offset = 8
    while offset + 60 <= len(content):
        header = content[offset : offset + 60]
        name, size = header[:16].decode().strip().rstrip("/"), int(header[48:58])
        if name == "data.tar.zst":  # no zstd in the standard library before 3.14
            listing = subprocess.run(
                ["dpkg-deb", "--fsys-tarfile", str(deb)], capture_output=True, check=True
            )
            return listing.stdout
        if name.startswith("data.tar"):
            return content[offset + 60 : offset + 60 + size]
        offset += 60 + size + (size & 1)
    raise AirgapError(f"{deb}: no data.tar in it")


def unpack(deb: Path, root: Path) -> None:
    """Unpacks a package's files below `root`; absolute links are made to point inside of it."""
    with tarfile.open(fileobj=io.BytesIO(data_tar(deb))) as tar:
        for member in tar:
            name = posixpath.normpath(member.name)
            if name.startswith(("../", "/")):
                raise AirgapError(f"{deb}: a member is called {member.name}")
            if _LEFT_OUT.match(name):
                continue
            if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
                continue
            member.name = name
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            if member.isdir():
                member.mode |= 0o755
            elif member.isfile():
                member.mode |= 0o644
            if member.issym() and member.linkname.startswith("/"):
                member.linkname = os.path.relpath(member.linkname, "/" + posixpath.dirname(name))
            if sys.version_info >= (3, 12):
                tar.extract(member, root, filter="fully_trusted")
            else:
                tar.extract(member, root)
