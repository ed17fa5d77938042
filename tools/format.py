"""Formats the files of the workspace, as the tests of //tools/lint want them.

usage: ./bazelw run //tools:format [-- FILE ...]

Python goes through `ruff format`, C++ through clang-format, and BUILD and .bzl files through
buildifier.
Without names, all files that git tracks or would track are formatted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from lint.lint import LINTERS, workspace_files


def format_files(root: Path, names: Collection[str], buildifier: Path) -> int:
    """Runs each formatter on its files of `names`; returns how many of them failed."""
    failures = 0
    for name, linter in LINTERS.items():
        files = linter.files(names)
        if not linter.fix or not files:
            continue
        program = str(buildifier) if name == "buildifier" else ""
        if program and not buildifier.stat().st_size:
            print("buildifier: left out, because npm, which it comes from, is not on PATH")
            continue
        command = [*linter.command(program), *linter.fix, *files]
        result = subprocess.run(command, cwd=root, check=False)
        failures += result.returncode != 0
        print(f"{name}: {len(files)} files" if result.returncode == 0 else f"{name}: failed")
    return failures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buildifier", required=True, type=Path, help="empty if there is none")
    parser.add_argument("names", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        sys.exit("format: run it as `./bazelw run //tools:format`")
    root = Path(workspace)
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", workspace))
    names = [os.path.relpath(here / name, root) for name in arguments.names]
    sys.exit(
        format_files(root, names or workspace_files(root), arguments.buildifier.absolute()) > 0
    )


if __name__ == "__main__":
    main()
