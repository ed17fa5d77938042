"""The cache outside of the repository: locks and directories that appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Callable

from .base import note


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on `path`; the kernel drops it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("another run is preparing Bazel: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_directory(final: Path, build: Callable[[Path], None]) -> None:
    """Lets `build` fill a directory that is named `final` only once it is complete.

    `build` gets the temporary place; paths that it writes into files must name `final`. The caller
    holds the lock, so whatever lies in the temporary place was left by a run that was killed.
    """
    if final.exists():
        return
    temporary = final.with_name(final.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    build(temporary)
    os.rename(temporary, final)


def write_file(final: Path, content: bytes) -> None:
    """Writes a file that other runs see whole or not at all."""
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f"{final.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, final)


def digest(parts: Iterable[bytes]) -> str:
    """A short key for a sequence of byte strings; ("ab", "c") and ("a", "bc") differ."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:20]


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hex."""
    total = hashlib.sha256()
    with path.open("rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            total.update(block)
    return total.hexdigest()
