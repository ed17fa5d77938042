"""What `bazel run` may write into the source tree, and how."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from aoti_driver.base.errors import DriverError


def package_folder(target: str, workspace: str, repository: str, package: str) -> Path:
    """The folder of a target's package; an error if this isn't `bazel run` in its own workspace."""
    if not workspace:
        raise DriverError(
            f"{target} writes into the source tree, and only `bazel run` says where that is: "
            f"bazel run {target}"
        )
    if repository:
        raise DriverError(
            f"{target} belongs to another module ({repository}), whose sources are not "
            f"yours to change: run it in that module's own workspace"
        )
    folder = Path(workspace, package)
    if not folder.is_dir():
        raise DriverError(f"{target}: there is no folder {package} in {workspace}")
    return folder


def install(files: Mapping[Path, Callable[[Path], object]]) -> None:
    """Writes all files to temporary names, and moves them to their places when all are complete."""
    partial = {path: path.with_name(f".{path.name}.part") for path in files}
    try:
        for path, write in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(partial[path])
        for path, part in partial.items():
            os.replace(part, path)
    finally:
        for part in partial.values():
            part.unlink(missing_ok=True)
