"""Runs pip on hash-checked requirements, and repeats it after network errors."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

ATTEMPTS = 5

# Messages that pip prints for network errors.
NETWORK_TROUBLE = (
    "Retrying (",
    "Connection",
    "Temporary failure in name resolution",
    "Read timed out",
    "ReadTimeout",
    "IncompleteRead",
    "ProtocolError",
    "SSLError",
    "502 ",
    "503 ",
    "504 ",
)


def run_pip(
    command: Sequence[str], requirements: Sequence[str], attempts: int = ATTEMPTS
) -> str | None:
    """Runs `pip COMMAND`. All requirements must be pinned with hashes, and only wheels are
    installed.

    Returns None, or pip's message if it fails finally.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as lock:
        lock.write("".join(line + "\n" for line in requirements))
        lock.flush()
        arguments = [
            *(sys.executable, "-m", "pip", *command, "--quiet", "--no-input"),
            *("--disable-pip-version-check", "--no-deps", "--require-hashes"),
            *("--only-binary=:all:", "--requirement", lock.name),
        ]
        for attempt in range(1, attempts + 1):
            result = subprocess.run(
                arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            if result.returncode == 0:
                return None
            if not any(sign in result.stdout for sign in NETWORK_TROUBLE):
                break
            if attempt < attempts:
                time.sleep(2**attempt)
    return result.stdout
