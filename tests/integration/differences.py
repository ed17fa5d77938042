"""Describes where two artifacts that should be the same differ."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

_AR_MAGIC = b"!<arch>\n"
_AR_HEADER = 60


def different_files(left: Path, right: Path, names: list[str]) -> list[str]:
    """One line for each of the files `names` that is not the same below both folders."""
    found = []
    for name in names:
        one, other = (left / name).read_bytes(), (right / name).read_bytes()
        if one != other:
            found.append(f"{name}: {first_difference(one, other)}")
    return found


def first_difference(left: bytes, right: bytes) -> str:
    """The first member of an archive that differs, and its first differing bytes."""
    if left == right:
        return "no difference"
    members = zip_members if left[:4] == right[:4] == b"PK\x03\x04" else ar_members
    try:
        pairs = list(zip(members(left), members(right)))
    except zipfile.BadZipFile as e:
        return f"{e}; {_first_bytes(left, right)}"
    for (name, one), (other_name, other) in pairs:
        if name != other_name:
            return f"has the member {name} where the other has {other_name}"
        if one != other:
            return f"in its member {name}: {_first_bytes(one, other)}"
    return _first_bytes(left, right)


def zip_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)


def ar_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of a static library; none of any other file."""
    if not data.startswith(_AR_MAGIC):
        return
    at = len(_AR_MAGIC)
    while at + _AR_HEADER <= len(data):
        header = data[at : at + _AR_HEADER]
        size = int(header[48:58])
        yield header[:16].decode().strip(), data[at + _AR_HEADER : at + _AR_HEADER + size]
        at += _AR_HEADER + size + size % 2


def _first_bytes(left: bytes, right: bytes) -> str:
    shorter = min(len(left), len(right))
    at = next((i for i in range(shorter) if left[i] != right[i]), shorter)
    if at == shorter:
        return f"{len(left)} bytes, the other {len(right)}; they are the same as far as they go"
    begin = max(at - 16, 0)
    return (
        f"byte {at} of {len(left)}: {left[begin : at + 48]!r}, the other {right[begin : at + 48]!r}"
    )
