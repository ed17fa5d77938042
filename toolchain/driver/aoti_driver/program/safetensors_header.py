"""Reads and changes the header of a safetensors file, without torch.

This module needs only the standard library. See weights_file.py for the tensors.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aoti_driver.base.errors import DriverError

ALIGNMENT = 64

_CHUNK = 1 << 20


# The key in the metadata under which a weights file may name the program that it was made for.
PROGRAM_KEY = "rules_aoti.program"


def read_header(path: str | Path, where: str) -> tuple[dict[str, Any], int]:
    """A safetensors file's table of tensors, and the offset of their bytes."""
    header, begin = _read_header(path, where)
    header.pop("__metadata__", None)
    return header, begin


def read_metadata(path: str | Path, where: str) -> dict[str, str]:
    """The metadata of a safetensors file."""
    metadata = _read_header(path, where)[0].get("__metadata__")
    return metadata if isinstance(metadata, dict) else {}


def copy_with_metadata(source: str | Path, target: Path, metadata: dict[str, str]) -> None:
    """Copies a safetensors file. Its tensors stay aligned to 64 bytes."""
    if not metadata:
        shutil.copyfile(source, target)
        return
    header, begin = _read_header(source, Path(source).name)
    text = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    with open(source, "rb") as old, target.open("wb") as new:
        new.write(struct.pack("<Q", len(text)))
        new.write(text)
        old.seek(begin)
        shutil.copyfileobj(old, new, _CHUNK)


def _read_header(path: str | Path, where: str) -> tuple[dict[str, Any], int]:
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as f:
        start = f.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > size - 8:
            raise DriverError(f"{where}: this is not a safetensors file")
        try:
            header = json.loads(f.read(length))
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                if not (0 <= begin <= end <= size - 8 - length):
                    raise DriverError(f"{where}: this safetensors file is cut off")
                entry["dtype"], entry["shape"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DriverError(f"{where}: this is not a safetensors file") from None
    return header, 8 + length


def aligned_order(sizes: Iterable[tuple[str, int]]) -> list[str]:
    """Names in the order in which a weights file has the tensors; see weights_file.py.

    sizes: names and numbers of bytes.
    """

    def rank(item: tuple[str, int]) -> int:
        nbytes = item[1]
        return -min(nbytes & -nbytes, ALIGNMENT) if nbytes else -ALIGNMENT

    return [name for name, _ in sorted(sizes, key=rank)]
