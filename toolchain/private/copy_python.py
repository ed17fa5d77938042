"""Copies the interpreter that runs this script, and its standard library, into the working
directory.

usage: PYTHONHASHSEED=0 python -S copy_python.py

CPython looks for its library in the folders above its executable, so the copy does not need the
original: `bin/python3` is beside `lib/python3.N`. Files that no action needs are left out, above
all the tests of the library.

`python_files.txt` gets a digest of all copied files, so it changes whenever one of them does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from bytecode import compile_tree
from shared_libraries import needed_libraries, replace_runpath, runpath

# Paths in the library's folder. `site-packages` and additions of distributions are not part of the
# library.
UNUSED = (
    *("__pycache__", "config-*", "dist-packages", "site-packages"),
    *("ensurepip", "idlelib", "lib2to3", "test", "tests", "idle_test", "tkinter", "turtledemo"),
    *("_ctypes_test.*", "_test*.so", "_tkinter.*", "_xxtest*.so", "xxlimited*.so"),
)


def copy_library(source: Path, target: Path) -> None:
    """Copies the standard library; links become files."""
    shutil.copytree(source, target, ignore=_unless_readable(shutil.ignore_patterns(*UNUSED)))


def _unless_readable(
    ignore: Callable[[str, list[str]], set[str]],
) -> Callable[[str, list[str]], set[str]]:
    """Also leaves out dangling links, which distributions have."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        dangling = {name for name in names if not os.path.exists(os.path.join(folder, name))}
        return {*ignore(folder, names), *dangling}

    return ignored


def copy_executable(source: Path, target: Path, libraries: Path) -> None:
    """Copies the interpreter, and its shared library if it has one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
    for name in needed_libraries(source):
        if not name.startswith("libpython"):
            continue
        for folder in runpath(source):
            if (library := Path(folder.replace("$ORIGIN", str(source.parent))) / name).exists():
                shutil.copyfile(library, libraries / name)
                replace_runpath(target, f"$ORIGIN/../{libraries.name}")
                break


def digest(*folders: Path) -> str:
    """SHA-256 of all files below the folders, including their names."""
    whole = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.as_posix()} {content}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def main(arguments: Sequence[str]) -> None:
    if arguments:
        sys.exit(__doc__)
    executable = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    own = Path(sys.platlibdir) / library.name
    copy_library(library, own)
    extensions = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    if not (own / "lib-dynload").exists() and extensions.exists():
        copy_library(extensions, own / "lib-dynload")
    copy_executable(executable, Path("bin/python3"), own.parent)
    compile_tree(own)
    Path("python_files.txt").write_text(digest(Path("bin"), own.parent) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
