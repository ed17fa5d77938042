"""Writes files atomically, and makes temporary folders."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from aoti_driver.base import interruption
from aoti_driver.base.errors import chain

# Where each output is written first, if the supervisor moves it to its place.
_staged: Mapping[str, Path] | None = None

_NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of this user's disk space is used up",
    errno.EFBIG: "the file is larger than the file system or the limit (ulimit -f) allows",
}


def stage(places: Mapping[str, Path]) -> None:
    """From now on, :func:`outputs` are written to these places instead of their own."""
    global _staged
    _staged = places


def explain(error: OSError) -> str:
    """Explains an error of the file system in a sentence."""
    reason = _NO_ROOM.get(error.errno or 0) or os.strerror(error.errno or 0)
    where = f" ({error.filename})" if error.filename else ""
    return f"a file cannot be written or read{where}: {reason}"


def no_room(error: BaseException) -> OSError | None:
    """The error or its cause that says that a disk is full, a quota is used up, or the like; or
    None.
    """
    return next((e for e in chain(error) if isinstance(e, OSError) and e.errno in _NO_ROOM), None)


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A fresh directory, removed at the end.

    SIGTERM is delayed while the directory is made or removed: see interruption.py.
    """
    interruption.hold()
    try:
        path = Path(tempfile.mkdtemp(prefix="aoti_")).resolve()
        try:
            interruption.release()
            yield path
        finally:
            interruption.hold()
            shutil.rmtree(path, ignore_errors=True)
    finally:
        interruption.release()


@contextlib.contextmanager
def outputs(*paths: str) -> Iterator[list[Path]]:
    """Temporary names beside the given files or folders, all renamed when the block succeeds.

    Bazel makes output folders itself, empty. Under a supervisor (:func:`stage`), the names are
    those that the supervisor gave, and it moves the files.
    """
    if _staged is not None:
        yield [_staged[os.path.normpath(p)] for p in paths]
        return
    targets = [Path(p) for p in paths]
    partial = [t.with_name(f".{t.name}.part") for t in targets]
    try:
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
        for path in partial:
            remove(path)
        yield partial
        for path, target in zip(partial, targets):
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(path, target)
    except BaseException:
        for path in [*partial, *targets]:
            remove(path)
        raise


def remove(path: Path) -> None:
    """Removes a file or a folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
