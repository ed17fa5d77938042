"""Files that appear whole or not at all, and a place for those that nobody sees."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A fresh directory, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="aoti_")).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def outputs(*paths: str) -> Iterator[list[Path]]:
    """Temporary names beside the given files or folders, all renamed when the block succeeds.

    Bazel makes the folders among its outputs itself, empty.
    """
    targets = [Path(p) for p in paths]
    partial = [t.with_name(f".{t.name}.part") for t in targets]
    try:
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
        for path in partial:
            _remove(path)
        yield partial
        for path, target in zip(partial, targets):
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(path, target)
    except BaseException:
        for path in [*partial, *targets]:
            _remove(path)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
