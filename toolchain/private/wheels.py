"""Reads what a wheel would install and where, without pip and without unpacking it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath


class WheelError(Exception):
    """A wheel that can't be installed."""


def contents(wheel: zipfile.ZipFile) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """A wheel's files by their paths below site-packages, as `pip install --target` puts them."""
    for info in wheel.infolist():
        if info.is_dir():
            continue
        path = installed_path(info.filename)
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise WheelError(f"{wheel.filename}: {info.filename} is outside of the wheel")
        yield path, info


def installed_path(member: str) -> str:
    """The installed path of a member: `<name>-<version>.data/<scheme>/` stands for another
    folder.
    """
    folder, _, rest = member.partition("/")
    if not folder.endswith(".data"):
        return member
    scheme, _, path = rest.partition("/")
    if scheme in ("purelib", "platlib", "data"):
        return path
    if scheme == "scripts":
        return f"bin/{path}"
    if scheme == "headers":
        return f"include/python/{folder.partition('-')[0]}/{path}"
    raise WheelError(f"{member}: wheels have no scheme `{scheme}`")
