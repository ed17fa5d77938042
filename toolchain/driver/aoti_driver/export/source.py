"""The model's source and weights as the user's program would see them: a private runfiles tree."""

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
from typing import Any

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract.manifest import public_version
from aoti_driver.export import companions

_MAIN = "_main/"
_NETWORK_ERRORS = frozenset(
    {"gaierror", "herror", "URLError", "ConnectError", "ConnectionError", "MaxRetryError"}
)
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

    Links, but copies of Python files: what resolves ``__file__`` would find itself in a folder with
    files that nobody declared.
    """

    def __init__(self, root: Path, import_roots: Iterable[str]) -> None:
        self.root = root
        self.import_roots = list(import_roots)

    def add(self, entries: Iterable[str], flag: str) -> list[str]:
        """Adds ``<runfiles path>=<exec path>`` entries; returns their paths in the tree.

        A directory is linked whole, unless something else lies inside of it.
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
        """Where a py_binary starts. (An action does among the sources of the whole workspace.)"""
        before = os.getcwd()
        main = self.root / _MAIN
        main.mkdir(exist_ok=True)
        os.chdir(main)
        try:
            yield
        finally:
            os.chdir(before)

    def check_torch(self, toolchain_version: str) -> None:
        """Refuses a tree that brings a torch of another version than the toolchain's."""
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
        """A path in the tree as the user knows it (relative to the workspace or the runfiles)."""
        relative = os.path.relpath(path, self.root)
        return relative.removeprefix(_MAIN)

    def import_name(self, path: str) -> str:
        """Like :meth:`name`, but other repositories' files are called as they are imported."""
        relative = os.path.relpath(path, self.root)
        if not relative.startswith(_MAIN):
            roots = [root for root in self.import_roots if relative.startswith(f"{root}/")]
            if roots:
                return os.path.relpath(relative, max(roots, key=len))
        return relative.removeprefix(_MAIN)

    def contains(self, path: str) -> bool:
        return path.startswith(str(self.root) + os.sep)

    def scrub(self, text: str) -> str:
        """Removes the tree's own place from a text."""
        for prefix in (f"{self.root}/{_MAIN}", f"{self.root}/", str(self.root)):
            text = text.replace(prefix, "")
        return text

    def frame(self, path: str, line: int, function: str) -> Frame:
        """A line of a file in the tree, quoted."""
        return Frame(self.name(path), line, function, linecache.getline(path, line).strip())

    def frames(self, trace: TracebackType | None) -> list[Frame]:
        """The user's lines of a traceback, outermost first."""
        return [
            Frame(self.name(f.filename), f.lineno or 0, f.name, (f.line or "").strip())
            for f in traceback.extract_tb(trace)
            if self.contains(f.filename)
        ]

    def describe(self, error: BaseException) -> str:
        """The error with its causes and the user's lines of its traceback, and nothing else."""
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
        """Makes every parent a directory of our own, replacing links to whole directories."""
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
    """The error, and what led to it: a package that imports lazily hides that behind its own."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        yield current
        seen.add(id(current))
        implied = isinstance(current, ImportError) and not current.__suppress_context__
        current = current.__cause__ or (current.__context__ if implied else None)


def import_attribute(tree: SourceTree, reference: str, where: str) -> Any:
    """The object that ``pkg.mod:attr`` names; ``where`` starts every error."""
    module_name, separator, path = reference.partition(":")
    if not separator or not all(p.isidentifier() for p in [*module_name.split("."), path]):
        raise DriverError(
            f'{where}: expected "package.module:name", as in "models.encoder:build", '
            f'got "{reference}"'
        )
    module = _import(tree, module_name, where)
    if not hasattr(module, path):
        if hidden := _hidden(tree, module_name):
            raise DriverError(f"{where}: {hidden}")
        public = sorted(n for n in vars(module) if not n.startswith("_"))
        raise DriverError(
            f'{where}: module {module_name} has no "{path}"{did_you_mean(path, public)}. '
            f"It has: {listed(public)}."
        )
    return getattr(module, path)


def undeclared(error: BaseException, tree: SourceTree) -> str:
    """What to do about a module or file that is not among the sources; empty for other errors."""
    chain = list(causes(error))
    if hint := companions.explain(chain, tree):
        return hint
    missing = [e.name for e in chain if isinstance(e, ModuleNotFoundError) and e.name]
    if missing and (hidden := _hidden(tree, missing[-1])):
        return f" {hidden}"
    if missing:  # the innermost: packages that import lazily wrap it
        return (
            f' it needs the module "{missing[-1]}", which no dep of "module" provides. Add the '
            f'target that provides "{missing[-1]}" to the deps of the py_library that imports it:'
        )
    unread = isinstance(error, FileNotFoundError | PermissionError)
    if unread and isinstance(error.filename, str | Path):  # type: ignore[attr-defined]
        path = os.path.normpath(tree.root / _MAIN / error.filename)  # type: ignore[attr-defined]
        # One outside of the tree is there for other programs, but not for a step of a build.
        if tree.contains(path) or isinstance(error, PermissionError):
            return (
                f' it reads the file "{tree.name(path) if tree.contains(path) else path}", which '
                '"module" does not declare. Add it to the data of the py_library that reads it, '
                "or to weights:"
            )
    if any(_asks_the_network(e) for e in chain):
        return (
            " it asks the network, which no step of a build reaches. Fetch the file with a "
            "repository rule (http_file), and add it to weights or to the data of the py_library "
            "that reads it:"
        )
    return ""


def _asks_the_network(error: BaseException) -> bool:
    """A connection, a name's address, or a library's error for the lack of them."""
    if isinstance(error, PermissionError) and error.filename is None:
        frames = traceback.walk_tb(error.__traceback__)
        return any(frame.f_globals.get("__name__") == "socket" for frame, _ in frames)
    return type(error).__name__ in _NETWORK_ERRORS


def _import(tree: SourceTree, name: str, where: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        missing = e.name or "?"
        if name == missing or name.startswith(missing + "."):
            available = sorted(_modules(tree))
            if name in available and (hidden := _hidden(tree, name)):
                raise DriverError(f"{where}: {hidden}") from None
            near = [m for m in available if m.split(".")[-1] == name.split(".")[-1]] or available
            shown = near[:8] + (["..."] if len(near) > 8 else [])
            raise DriverError(
                f'{where}: no module "{name}" among the sources of "module"'
                f"{did_you_mean(name, available)}. Modules there: {listed(shown)}."
            ) from None
        raise _import_failed(e, tree, name, where) from None
    except (KeyboardInterrupt, DriverError):
        raise
    except BaseException as e:
        raise _import_failed(e, tree, name, where) from None


def _hidden(tree: SourceTree, name: str) -> str | None:
    """Why a module of the sources can't be imported: another one has its name, and came first."""
    top = name.split(".")[0]
    loaded = sys.modules.get(top)
    places = [getattr(loaded, "__file__", None), *getattr(loaded, "__path__", ())]
    own = {module.split(".")[0] for module in _modules(tree)}
    if loaded is None or top not in own or any(tree.contains(str(p)) for p in places):
        return None
    others = (
        "a module of Python's standard library"
        if top in sys.stdlib_module_names
        else "a package of the torch toolchain"
    )
    return (
        f'"{name}" of "module" is hidden by {others}, which is called "{top}" too and was imported '
        f'before. Give the package "{top}" another name.'
    )


def _import_failed(error: BaseException, tree: SourceTree, name: str, where: str) -> DriverError:
    message = f"{where}: {name} cannot be imported:{undeclared(error, tree)}\n"
    message += tree.describe(error)
    if isinstance(error, SyntaxError) and error.filename:
        line = (error.text or "").strip()
        message += f"\n  in {tree.name(error.filename)}, line {error.lineno}: {line}"
    return DriverError(message)


def _modules(tree: SourceTree) -> Iterator[str]:
    for import_root in tree.import_roots:
        root = tree.root / import_root
        for folder, folders, files in os.walk(root):
            if "site-packages" in Path(folder).parts:
                folders.clear()
                continue
            for file in files:
                if file.endswith(".py"):
                    path = Path(folder, file).relative_to(root).with_suffix("")
                    yield ".".join(p for p in path.parts if p != "__init__")
