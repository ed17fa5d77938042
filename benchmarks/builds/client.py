"""Bazel as a developer runs it, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_PROCESSES = re.compile(r"^INFO: \d+ process(?:es)?: (.*)\.$", re.MULTILINE)


class BuildError(Exception):
    """Bazel failed; the message is what it printed."""


class Bazel:
    """One client: a source tree, and an output base of its own.

    What it prints is kept in `printed`. Not thread safe: Bazel runs one command at a time.
    """

    def __init__(self, source: Path, output_base: Path, options: Sequence[str] = ()) -> None:
        self._source = source
        self._output_base = output_base
        self._options = list(options)
        self.printed = ""

    def build(self, labels: Sequence[str], *options: str) -> float:
        """Builds; returns the seconds from the command's start to its end."""
        begun = time.monotonic()
        self._run("build", "--color=no", "--curses=no", *self._options, *options, *labels)
        return time.monotonic() - begun

    def ran(self) -> dict[str, int]:
        """How the last build got its actions' results, as Bazel sums it up: `{"worker": 2}`."""
        found = _PROCESSES.findall(self.printed)
        if not found:
            raise BuildError(f"no summary of the processes in:\n{self.printed}")
        counts = (part.split(" ", 1) for part in found[-1].split(", "))
        return {kind: int(count) for count, kind in counts}

    def output(self, *arguments: str) -> str:
        return self._run(*arguments)

    def driver_arguments(self, label: str, mnemonic: str) -> list[str]:
        """The command line of a step, with what starts the driver before the step's arguments."""
        query = f'mnemonic("{mnemonic}", {label})'
        text = self._run("aquery", "--output=jsonproto", *self._options, query)
        arguments: list[str] = json.loads(text)["actions"][0]["arguments"]
        return arguments

    def execution_root(self) -> Path:
        return Path(self._run("info", "execution_root").strip())

    def clean(self) -> None:
        """Forgets what was built; what was downloaded stays."""
        self._run("clean", *self._options)

    def shutdown(self) -> None:
        self._run("shutdown")

    def _run(self, *arguments: str) -> str:
        command = [
            *(sys.executable, "-B", str(self._source / "bazelw")),
            f"--output_base={self._output_base}",
            *arguments,
        ]
        # Variables of the `bazel run` that this is a part of would be those of no user.
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BUILD_", "RUNFILES", "JAVA_", "PYTHON"))
        }
        result = subprocess.run(
            command, cwd=self._source, env=environment, capture_output=True, text=True
        )
        self.printed = result.stderr
        if result.returncode:
            raise BuildError(f"bazel {' '.join(arguments)}:\n{result.stderr}")
        return result.stdout
