"""Runs a benchmark as a user does, with little effort."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from python.runfiles import runfiles


def run(variable: str, folder: Path, *flags: str) -> str:
    """What the program prints; its results are in the folder."""
    found = runfiles.Create()
    assert found
    program = found.Rlocation(os.environ[variable])
    assert program
    result = subprocess.run(
        [
            program,
            "--quick",
            "--out",
            str(folder / "out"),
            "--cache",
            str(folder / "cache"),
            *flags,
        ],
        env=dict(os.environ) | found.EnvVars() | {"BUILD_WORKING_DIRECTORY": str(folder)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
