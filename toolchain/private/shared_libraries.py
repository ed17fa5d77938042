"""Which shared libraries of a site-packages folder does a library need? Reads ELF files."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 0, 1, 5, 10


def needed_libraries(path: Path) -> list[str]:
    """The names in DT_NEEDED of a 64-bit little-endian ELF file."""
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
            return []
        file.seek(dynamic[1])
        entries = list(struct.iter_unpack("<qQ", file.read(dynamic[3])))
        if (_DT_NULL, 0) in entries:
            entries = entries[: entries.index((_DT_NULL, 0))]
        tags = dict(entries)
        if _DT_STRTAB not in tags:
            return []
        file.seek(_file_offset(segments, tags[_DT_STRTAB]))
        strings = file.read(tags[_DT_STRSZ])
    names = [value for tag, value in entries if tag == _DT_NEEDED]
    return [strings[at : strings.index(b"\0", at)].decode() for at in names]


def _file_offset(segments: list[tuple[int, ...]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            return offset + address - start
    raise ValueError(f"address {address:#x} is in no segment")


def library_closure(site: Path, roots: Iterable[str]) -> list[Path]:
    """The libraries named in `roots`, as far as they exist, and all under `site` that they need."""
    here = {path.name: path for path in sorted(site.rglob("*.so*")) if path.is_file()}
    # torch's own come first: another package may bundle a library of the same name.
    here.update({path.name: path for path in sorted((site / "torch" / "lib").glob("*.so*"))})
    found: dict[str, Path] = {}
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in here and name not in found:
            found[name] = here[name]
            todo += needed_libraries(here[name])
    return [found[name] for name in sorted(found)]
