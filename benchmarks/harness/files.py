"""What Bazel has built for a benchmark, and where the contestants' files are kept."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from python.runfiles import runfiles

from benchmarks.harness.contestants import Setting

PACKAGE = "_main/benchmarks"  # below the runfiles
ROOT = Path(__file__).absolute().parents[2]


class Files:
    """Files that Bazel has built, by their runfiles paths."""

    def __init__(self) -> None:
        found = runfiles.Create()
        if found is None:
            sys.exit("start me with: bazel run //benchmarks:runtime, or //benchmarks:throughput")
        self._runfiles = found
        self.variables: dict[str, str] = dict(found.EnvVars())

    def path(self, name: str) -> str:
        path = self._runfiles.Rlocation(name)
        if not path or not os.path.exists(path):
            sys.exit(f"{name} is not among the runfiles")
        return str(path)

    def setting(self, cache: Path | None, level: str) -> Setting:
        """Where things are on this machine; level: of the CPU."""
        return Setting(
            root=ROOT,
            cache=cache or default_cache(),
            runfiles=self.variables,
            level=level,
            launcher=self.path(f"{PACKAGE}/launcher"),
        )

    def descriptions(self) -> list[dict[str, Any]]:
        """The models of this suite, with absolute paths."""
        # One suite is in these runfiles; its file names the models in their order.
        (suite,) = (ROOT / "benchmarks").glob("*.models")
        descriptions = []
        for name in suite.read_text(encoding="utf-8").split():
            path = Path(self.path(f"{PACKAGE}/{name}.json"))
            description = json.loads(path.read_text(encoding="utf-8"))
            description["weights"] = [self.path(file) for file in description["weights"]]
            runners = description["runners"].items()
            description["runners"] = {key: self.path(runner) for key, runner in runners}
            descriptions.append(description)
        return descriptions


def default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/tmp")) / ".cache"
    return Path(home) / "rules_aoti" / "benchmarks"
