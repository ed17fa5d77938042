"""The folders in which a step's process writes its outputs until the step is done."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError


class Staging:
    """The place of each output while the child runs; it is beside the first output, so that moving
    is cheap.
    """

    def __init__(self, arguments: Sequence[str], directory: Path) -> None:
        values = [
            value
            for flag, _, value in (a.partition("=") for a in arguments)
            if flag.startswith("--out") and value
        ]
        self._targets = [directory / value for value in values]
        self.folders: list[str] = []
        self.places: dict[str, Path] = {}
        if self._targets:
            first = self._targets[0]
            # The name is the same in each run, so that files of a killed worker are removed.
            digest = hashlib.sha256(first.name.encode()).hexdigest()
            folder = first.with_name(f".aoti_{digest[:16]}")
            self.folders = [str(folder)]
            for i, (value, target) in enumerate(zip(values, self._targets, strict=True)):
                self.places[os.path.normpath(value)] = folder / str(i) / target.name

    def make(self) -> None:
        """Makes the folders, empty."""
        self.remove()
        for place in self.places.values():
            place.parent.mkdir(parents=True)

    def commit(self) -> None:
        pairs = list(zip(self._targets, self.places.values(), strict=True))
        if linked := [target.name for target, staged in pairs if _has_links(staged)]:
            raise DriverError(
                f'the step put links in the place of its output "{linked[0]}", or into it; '
                "expected files. Remove what makes them from the model: they could lead to any "
                "file of this machine."
            )
        for target, staged in pairs:
            if not staged.exists():
                continue  # Bazel says that the output is missing
            target.parent.mkdir(parents=True, exist_ok=True)
            files.remove(target)
            shutil.move(staged, target)

    def forget(self) -> None:
        """Removes outputs of earlier runs, so that they can't be taken for outputs of this run."""
        for target in self._targets:
            if target.is_file():
                files.remove(target)

    def remove(self) -> None:
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def _has_links(staged: Path) -> bool:
    """Whether the output, its folder here, or anything in the output is a link to another place."""
    if staged.parent.is_symlink() or staged.is_symlink():
        return True
    return any(
        os.path.islink(os.path.join(root, name))
        for root, folders, names in os.walk(staged)
        for name in (*folders, *names)
    )
