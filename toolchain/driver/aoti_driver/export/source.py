"""A private runfiles tree with the model's source and weights, as the user's program would have
it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import linecache
import os
import re
import shutil
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from aoti_driver.base.errors import DriverError, chain
from aoti_driver.contract.torch_version import public_version

MAIN = "_main/"
_VERSION = re.compile(r"^__version__\s*(?::\s*\w+\s*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Frame:
    """A line of the user's source."""

    path: str
    line: int
    function: str
    code: str

    def __str__(self) -> str:
        return f"  {self.path}:{self.line} in {self.function}\n    {self.code}"


class SourceTree:
    """``<root>/<runfiles path>`` for every source and weight, and the import path.

    The tree consists of links, except for copies of Python files: code that resolves links in
    ``__file__`` would find undeclared files beside the original.
    """

    def __init__(self, root: Path, import_roots: Iterable[str]) -> None:
        self.root = root
        self.import_roots = list(import_roots)

    def add(self, entries: Iterable[str], flag: str) -> list[str]:
        """Adds ``<runfiles path>=<exec path>`` entries; returns their paths in the tree.

        A directory is linked as a whole, unless another entry lies inside it.
        """
        paths = []
        for entry in entries:
            runfile, separator, exec_path = entry.partition("=")
            if not separator or not runfile or not exec_path:
                raise DriverError(f"{flag}={entry}: expected <runfiles path>=<path>")
            target = Path(exec_path).absolute()
            if not target.exists():
                raise DriverError(f"{flag}={entry}: no such file: {exec_path}")
            link = self.root / os.path.normpath(runfile)
            self._open_parents(link)
            if not link.is_symlink() and not link.exists():
                if target.suffix == ".py":
                    shutil.copyfile(target, link)
                else:
                    link.symlink_to(target)
            elif link.is_dir() and target.is_dir():
                self._merge(link, target)
            paths.append(str(link))
        return paths

    def activate(self) -> None:
        """Puts the tree in front of ``sys.path``, as py_binary would."""
        roots = [str(self.root / r) for r in self.import_roots]
        sys.path[:0] = [*roots, str(self.root)]
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()

    @contextlib.contextmanager
    def as_working_directory(self) -> Iterator[None]:
        """The working directory of a py_binary. (That of an action contains the whole workspace's
        sources.)
        """
        before = os.getcwd()
        main = self.root / MAIN
        main.mkdir(exist_ok=True)
        os.chdir(main)
        try:
            yield
        finally:
            os.chdir(before)

    def check_torch(self, toolchain_version: str) -> None:
        """Refuses a tree with a torch of another version than the toolchain's."""
        for root in [*self.import_roots, "."]:
            version_file = self.root / root / "torch" / "version.py"
            if not version_file.is_file():
                continue
            match = _VERSION.search(version_file.read_text(encoding="utf-8"))
            brought = match[1] if match else "unknown"
            if public_version(brought) != public_version(toolchain_version):
                raise DriverError(
                    f"the module's deps bring torch {brought} ({self.name(version_file)}), but "
                    f"the toolchain is torch {toolchain_version}: a model is exported by the "
                    "toolchain's torch. Give both the same version, in torch.toolchain(version = "
                    "...) or in the lock file that the module's deps come from."
                )

    def name(self, path: str | Path) -> str:
        """A path in the tree as the user knows it: relative to the workspace or the runfiles."""
        relative = os.path.relpath(path, self.root)
        return relative.removeprefix(MAIN)

    def import_name(self, path: str) -> str:
        """Like :meth:`name`, but files of other repositories have the path by which they are
        imported.
        """
        relative = os.path.relpath(path, self.root)
        if not relative.startswith(MAIN):
            roots = [root for root in self.import_roots if relative.startswith(f"{root}/")]
            if roots:
                return os.path.relpath(relative, max(roots, key=len))
        return relative.removeprefix(MAIN)

    def contains(self, path: str) -> bool:
        return path.startswith(str(self.root) + os.sep)

    def scrub(self, text: str) -> str:
        """Removes the path of the tree from a text."""
        for prefix in (f"{self.root}/{MAIN}", f"{self.root}/", str(self.root)):
            text = text.replace(prefix, "")
        return text

    def frame(self, path: str, line: int, function: str) -> Frame:
        """A line of a file in the tree, with its text."""
        return Frame(self.name(path), line, function, linecache.getline(path, line).strip())

    def frames(self, trace: TracebackType | None) -> list[Frame]:
        """The user's lines of a traceback, outermost first."""
        return [
            Frame(self.name(f.filename), f.lineno or 0, f.name, (f.line or "").strip())
            for f in traceback.extract_tb(trace)
            if self.contains(f.filename)
        ]

    def describe(self, error: BaseException) -> str:
        """The error with its causes and only the user's lines of its traceback."""
        lines = [str(frame) for frame in self.frames(error.__traceback__)]
        if isinstance(error, SystemExit):
            call = f"sys.exit({error.code!r})" if type(error) is SystemExit else str(error)
            lines.append(f"it ends the process that builds the model ({call}): remove that call")
            return "\n".join(lines)
        for number, each in enumerate(causes(error)):
            message = self.scrub(str(each)).strip() or "(no message)"
            lines.append(f"{'  caused by ' if number else ''}{type(each).__name__}: {message}")
        return "\n".join(lines)

    def _open_parents(self, path: Path) -> None:
        """Makes every parent a directory in the tree, replacing links to whole directories."""
        parents = [p for p in path.parents if p.is_relative_to(self.root)]
        for parent in reversed(parents):
            if parent.is_symlink():
                target = parent.resolve()
                parent.unlink()
                parent.mkdir()
                self._merge(parent, target)
            else:
                parent.mkdir(exist_ok=True)

    def _merge(self, directory: Path, target: Path) -> None:
        if directory.is_symlink():
            if directory.resolve() == target.resolve():
                return
            inner = directory.resolve()
            directory.unlink()
            directory.mkdir()
            self._merge(directory, inner)
        for child in sorted(target.iterdir()):
            link = directory / child.name
            if not link.exists():
                link.symlink_to(child)
            elif link.is_dir() and child.is_dir():
                self._merge(link, child)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes: a package that imports lazily hides an error behind its own."""
    return chain(error, lambda e: isinstance(e, ImportError) and not e.__suppress_context__)
