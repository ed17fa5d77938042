"""Reads from ELF files which libraries they need at run time, and where they look for them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 10, 15, 29


@dataclass(frozen=True)
class _Dynamic:
    """The dynamic section of an ELF file."""

    entries: list[tuple[int, int]]
    strings: bytes
    strings_offset: int

    def values(self, *tags: int) -> list[int]:
        """The positions in `strings` to which the entries with these tags point."""
        return [value for tag, value in self.entries if tag in tags]

    def string(self, at: int) -> str:
        return self.strings[at : self.strings.index(b"\0", at)].decode()


def _dynamic(path: Path) -> _Dynamic:
    with path.open("rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: not a 64-bit little-endian ELF file")
        offset, size, count = struct.unpack_from("<Q14xHH", header, 32)
        file.seek(offset)
        table = file.read(size * count)
        segments = [struct.unpack_from("<I4xQQ8xQ", table, i * size) for i in range(count)]
        dynamic = next((s for s in segments if s[0] == _PT_DYNAMIC), None)
        if dynamic is None:
            return _Dynamic([], b"", 0)
        file.seek(dynamic[1])
        entries = list(struct.iter_unpack("<qQ", file.read(dynamic[3])))
        if (_DT_NULL, 0) in entries:
            entries = entries[: entries.index((_DT_NULL, 0))]
        tags = dict(entries)
        if _DT_STRTAB not in tags:
            return _Dynamic([], b"", 0)
        at = _file_offset(segments, tags[_DT_STRTAB])
        file.seek(at)
        return _Dynamic(entries, file.read(tags[_DT_STRSZ]), at)


def _file_offset(segments: list[tuple[int, ...]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            return offset + address - start
    raise ValueError(f"address {address:#x} is in no segment")


def needed_libraries(path: Path) -> list[str]:
    """The names in DT_NEEDED of a 64-bit little-endian ELF file."""
    dynamic = _dynamic(path)
    return [dynamic.string(at) for at in dynamic.values(_DT_NEEDED)]


def runpath(path: Path) -> list[str]:
    """The folders in which an ELF file looks for libraries before the system's."""
    dynamic = _dynamic(path)
    folders = (dynamic.string(at).split(":") for at in dynamic.values(_DT_RPATH, _DT_RUNPATH))
    return [folder for each in folders for folder in each if folder]


def replace_runpath(path: Path, folder: str) -> None:
    """Changes the folder in which an ELF file looks for libraries; the new path must not be longer
    than the old one.
    """
    dynamic = _dynamic(path)
    new = folder.encode()
    for at in dynamic.values(_DT_RPATH, _DT_RUNPATH):
        old = len(dynamic.string(at).encode())
        if len(new) <= old:
            with path.open("r+b") as file:
                file.seek(dynamic.strings_offset + at)
                file.write(new.ljust(old, b"\0"))


def library_closure(
    libraries: Collection[str], needed: Callable[[str], Iterable[str]], roots: Iterable[str]
) -> list[str]:
    """The `libraries` that `roots` names, and all libraries among them that these need."""
    found: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in libraries and name not in found:
            found.add(name)
            todo += needed(name)
    return sorted(found)
