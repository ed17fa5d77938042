"""Compiles a tree of Python modules to bytecode that is always the same and is never checked at
import.
"""

from __future__ import annotations

import contextlib
import os
import py_compile
from pathlib import Path


def compile_tree(root: Path) -> None:
    """Writes a .pyc for each module outside of test folders.

    Without bytecode, `import torch` takes several times as long in every action. The bytecode has a
    hash that imports do not check, because the sources' timestamps are meaningless.

    Whether marshal writes an object as shared depends on its reference count, and so on what was
    compiled before. So each folder is compiled in its own process, and all are forked from one
    state.
    """
    folders = sorted({path.parent for path in root.rglob("*.py")})
    running: set[int] = set()
    for folder in folders:
        if "tests" in folder.parts:
            continue
        if len(running) >= (os.cpu_count() or 1):
            running.discard(os.wait()[0])
        child = os.fork()
        if child == 0:
            _compile_and_exit(folder, root)
        running.add(child)
    while running:
        running.discard(os.wait()[0])


def _compile_and_exit(folder: Path, root: Path) -> None:
    try:
        for source in sorted(folder.glob("*.py")):
            _compile(source, root)
    finally:
        os._exit(0)


def _compile(source: Path, root: Path) -> None:
    # At import, Python sets the path in the code object to the real one.
    name = str(source.relative_to(root))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    # Wheels contain templates and code for other Pythons, which can't be compiled.
    with contextlib.suppress(py_compile.PyCompileError, ValueError, RecursionError):
        py_compile.compile(str(source), dfile=name, doraise=True, invalidation_mode=mode)
