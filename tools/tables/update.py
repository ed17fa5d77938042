"""Writes the generated parts of Python and C++ files from the tables of dtypes and ISA levels.

usage: update.py --root=FILE_IN_THE_WORKSPACE

The tables are Starlark files without functions, in toolchain/tables. A file marks each part and
gives its name:

    // BEGIN enumerators: generated from toolchain/tables by ./bazelw run //tools/tables:update
    // END enumerators
"""

from __future__ import annotations

import argparse
import re
import runpy
from pathlib import Path
from typing import Any

from tables import dtypes, isas

TABLES = "toolchain/tables"
COMMAND = "./bazelw run //tools/tables:update"

# Every file with a generated part.
FILES = (
    "runtime/core/cpu.cc",
    "runtime/core/dtype_table.h",
    "runtime/include/aoti/dtype.h",
    "runtime/slim/abi/types.cc",
    "runtime/slim/cpu/cpu.cc",
    "runtime/slim/cpu/cpu.h",
    "runtime/slim/cpu/kernels.h",
    "runtime/slim/kernels/levels.h",
    "runtime/slim/tensor/dtype.cc",
    "runtime/slim/tensor/dtype.h",
    "toolchain/driver/aoti_driver/contract/dtypes.py",
    "toolchain/driver/aoti_driver/contract/isa.py",
)

_PART = re.compile(
    r"^(?P<begin>(?P<indent> *)(?P<comment>//|#) BEGIN (?P<name>\w+): (?P<note>[^\n]*)\n)"
    r".*?"
    r"^(?P<end> *(?P=comment) END (?P=name)\n)",
    re.MULTILINE | re.DOTALL,
)


class TableError(Exception):
    """A file's marks are wrong; the message says where and how."""


def load(root: Path) -> dict[str, Any]:
    """The tables by name: DTYPES, INSIDE_DTYPES, ABI_DTYPES, ISAS, CUDA_ARCHS."""
    tables: dict[str, Any] = {}
    for file in ("cuda_archs.bzl", "dtypes.bzl", "isas.bzl"):
        tables |= runpy.run_path(str(root / TABLES / file))
    return {name: table for name, table in tables.items() if name.isupper() and name[0] != "_"}


def parts(tables: dict[str, Any]) -> dict[str, list[str]]:
    """The lines of every generated part, by its name, without the indentation of its marks."""
    return dtypes.parts(tables) | isas.parts(tables)


def rendered(where: str, text: str, generated: dict[str, list[str]]) -> tuple[str, list[str]]:
    """``text`` with its parts replaced by those of the tables, and the names of the parts."""
    names: list[str] = []
    note = f"generated from {TABLES} by {COMMAND}"

    def replace(match: re.Match[str]) -> str:
        name, indent = match["name"], match["indent"]
        if name not in generated:
            raise TableError(f"{where}: no part is named {name}; there are {', '.join(generated)}")
        if match["note"] != note:
            raise TableError(f'{where}: what follows "BEGIN {name}: " must be "{note}"')
        names.append(name)
        # Preprocessor lines of C++ are not indented.
        lines = [f"{'' if line.startswith('#') else indent}{line}\n" for line in generated[name]]
        return match["begin"] + "".join(lines) + match["end"]

    return _PART.sub(replace, text), names


def files(root: Path) -> dict[str, tuple[str, str]]:
    """For each file, its present text and the text that it should have."""
    generated = parts(load(root))
    found: dict[str, tuple[str, str]] = {}
    seen: list[str] = []
    for file in FILES:
        text = (root / file).read_text(encoding="utf-8")
        wanted, names = rendered(file, text, generated)
        found[file] = text, wanted
        seen += names
    if sorted(seen) != sorted(generated):
        different = sorted(set(generated) ^ set(seen)) or sorted(seen)
        raise TableError(f"every part must stand in one file, once: {', '.join(different)}")
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--root", type=Path, required=True, help="a file (or a link to one) in the workspace"
    )
    root = parser.parse_args().root.resolve().parent
    for file, (text, wanted) in files(root).items():
        if text != wanted:
            (root / file).write_text(wanted, encoding="utf-8")
            print(f"wrote {file}")


if __name__ == "__main__":
    main()
