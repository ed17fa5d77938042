"""Digests of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

_CHUNK = 1 << 20


def of_file(path: str | Path) -> tuple[str, int]:
    """(SHA-256, size) of a file."""
    sha256 = hashlib.sha256()
    size = 0
    with open(path, "rb") as f:
        while chunk := f.read(_CHUNK):
            sha256.update(chunk)
            size += len(chunk)
    return sha256.hexdigest(), size
