"""Runs a benchmark as a user does, with little effort."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from python.runfiles import runfiles


def path_of(variable: str) -> Path:
    """A file of the runfiles, whose name the variable has."""
    found = runfiles.Create()
    assert found
    path = found.Rlocation(os.environ[variable])
    assert path
    return Path(path)


def start(
    variable: str, folder: Path, *flags: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What the program prints, and how it ends; its results are in the folder."""
    found = runfiles.Create()
    assert found
    places = ["--out", str(folder / "out"), "--cache", str(folder / "cache")]
    variables = found.EnvVars() | {"BUILD_WORKING_DIRECTORY": str(folder)}
    return subprocess.run(
        [path_of(variable), "--quick", *places, *flags],
        env=dict(os.environ) | variables | environment,
        capture_output=True,
        text=True,
    )


def run(variable: str, folder: Path, *flags: str, **environment: str) -> str:
    """What the program prints when all goes well."""
    result = start(variable, folder, *flags, **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout
