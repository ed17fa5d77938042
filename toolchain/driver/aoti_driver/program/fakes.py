"""The Python files that register the fake kernels of a program's own operators.

Code is generated without the model's source, but Inductor must know which results an operator has.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from typing import Any

from aoti_driver.base import files
from aoti_driver.program import compiled_operators, operators, triton_operators
from aoti_driver.torch_internals import patching

_CLASS = "torch._C:_get_custom_class_python_wrapper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--source", **repeated, metavar="RUNFILE=PATH")
    parser.add_argument("--import_root", **repeated, metavar="RUNFILES_DIR")
    parser.add_argument("--operator_module", **repeated, metavar="RUNFILE")
    parser.add_argument("--operators", **repeated, metavar="LABEL=PATH")
    parser.add_argument("--operator_program", **repeated, metavar="MODULE=RUNFILES")
    parser.add_argument("--triton_module", **repeated, metavar="RUNFILE")


@contextlib.contextmanager
def imported(args: argparse.Namespace) -> Iterator[None]:
    """Lays the files out as runfiles, and imports those that register operators and fake kernels.

    The operators' libraries are loaded before, where a step runs the program.
    """
    operators.load(args.operators)
    with laid_out(args):
        register(args)
        yield


@contextlib.contextmanager
def laid_out(args: argparse.Namespace) -> Iterator[None]:
    """Lays the files out, and imports those with operators that a program doesn't declare."""
    if not args.operator_module and not args.triton_module:
        yield
        return
    with files.scratch_directory() as root:
        for entry in args.source:
            runfile, _, path = entry.partition("=")
            place = root / runfile
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        compiled_operators.stand_in(args.operator_program, root)
        sys.path[:0] = [str(root / name) for name in args.import_root]
        triton_operators.import_modules(args.triton_module, args.import_root)
        yield


def register(args: argparse.Namespace) -> None:
    """Imports the files, which are laid out, that register fake kernels of declared operators."""
    # Code is generated without the libraries, whose classes torch looks for.
    absent = {} if args.operators else {_CLASS: lambda *_: None}
    with patching.replaced(absent):
        operators.import_fakes(args.operator_module, args.import_root)
