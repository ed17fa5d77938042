"""Writes zip archives that torch reads (``.pt2``); the same content gives the same bytes.

torch maps records in place, so each one is stored uncompressed and begins at a multiple of 64
bytes, which padding in its local header achieves. Times, modes and order are fixed. Records are
streamed and never completely in memory.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

_ALIGNMENT = 64
_ROOT = "archive"
_PADDING_ID = 0x4246  # "FB", as torch's own writer has it
_CHUNK = 1 << 20
_ZIP64_EXTRA = 20
_ZIP64_FROM = 1 << 31


class Pt2Archive:
    """A PT2 archive being written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115 (closed by __exit__)
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)

    def __enter__(self) -> Pt2Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            for name, text in (
                ("archive_format", "pt2"),
                ("archive_version", "0"),
                (".data/version", "6\n"),
                ("byteorder", "little"),
            ):
                self.write_string(name, text)
            self._zip.close()
        self._file.close()

    def write_stream(self, name: str, size: int, chunks: Iterable[bytes | memoryview]) -> None:
        """Writes a record of ``size`` bytes from ``chunks``."""
        info = zipfile.ZipInfo(f"{_ROOT}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o644 << 16
        info.create_system = 3
        zip64 = size >= _ZIP64_FROM
        info.file_size = size
        begin = self._file.tell() + 30 + len(info.filename.encode()) + 4
        begin += _ZIP64_EXTRA if zip64 else 0
        padding = -begin % _ALIGNMENT
        info.extra = struct.pack("<HH", _PADDING_ID, padding) + b"\0" * padding
        with self._zip.open(info, "w", force_zip64=zip64) as record:
            for chunk in chunks:
                record.write(chunk)
        # Only the padding in the local header affects the alignment.
        info.extra = b""
        if info.file_size != size:
            raise AssertionError(f"{name}: wrote {info.file_size} bytes, announced {size}")

    def write_bytes(self, name: str, data: bytes) -> None:
        self.write_stream(name, len(data), [data])

    def write_string(self, name: str, data: str) -> None:
        self.write_bytes(name, data.encode())

    def write_file(self, name: str, path: str) -> None:
        with open(path, "rb") as f:
            self.write_stream(name, os.fstat(f.fileno()).st_size, iter(lambda: f.read(_CHUNK), b""))
