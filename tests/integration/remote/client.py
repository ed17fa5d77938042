"""A user of the remote execution server, with a copy of this repository and a home of their own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.execution_log import Log
from tests.integration.nested_bazel import NestedBazel, Run, copy_workspace, state

# Nothing runs here, not even what the server can't run.
_REMOTE_ONLY = [
    "--disk_cache=",
    "--noremote_local_fallback",
    "--remote_download_minimal",
    "--spawn_strategy=remote",
]
# Where what runs: see BUILD.bazel.
_POOLS = "--extra_execution_platforms=//tests/integration/remote:pools"
# Has a build bring the files that it was asked for.
DOWNLOAD = "--remote_download_outputs=toplevel"


@dataclass(frozen=True)
class Build:
    """A finished build: what Bazel printed, and the actions that are processes."""

    run: Run
    spawns: list[dict[str, Any]]

    def runners(self) -> Counter[str]:
        """How often each way of running an action was taken, `remote cache hit` among them."""
        return Counter(spawn["runner"] for spawn in self.spawns)

    def executed(self) -> Counter[str]:
        """How often each kind of action ran, by its mnemonic."""
        return Counter(spawn["mnemonic"] for spawn in self.spawns if not spawn["cacheHit"])

    def properties(self, mnemonic: str) -> list[dict[str, str]]:
        """What each action of a kind asks of its worker."""
        return [
            {property["name"]: property["value"] for property in spawn["platform"]["properties"]}
            for spawn in self.spawns
            if spawn["mnemonic"] == mnemonic
        ]

    def written(self, suffix: str) -> list[str]:
        """The SHA-256 of each file that an action wrote and whose path ends so."""
        return [
            str(output["digest"]["hash"])
            for spawn in self.spawns
            for output in spawn["actualOutputs"]
            if output["path"].endswith(suffix)
        ]

    def action(self, mnemonic: str) -> str:
        """The digest of the first action of a kind, by which the server knows its result."""
        return str(next(s["digest"]["hash"] for s in self.spawns if s["mnemonic"] == mnemonic))


class Client:
    """Bazel in a copy of this repository, all of whose actions run on the server at `address`.

    labels: what it builds. groups: the output groups of that.
    """

    def __init__(self, name: str, address: str, labels: Sequence[str], groups: str) -> None:
        place = state() / "remote" / name
        home = place / "home"
        home.mkdir(parents=True, exist_ok=True)
        copy_workspace(place / "source")
        # Bazel itself need not be fetched again.
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path(os.environ["HOME"], ".cache"))
        self._log = place / "executions.json"
        self._build = [*labels, f"--output_groups={groups}", _POOLS, *_REMOTE_ONLY]
        self._build += [f"--remote_executor={address}", f"--execution_log_json_file={self._log}"]
        self.bazel = NestedBazel(
            f"remote/{name}/output",
            module=place / "source",
            environment={"HOME": str(home), "XDG_CACHE_HOME": cache},
            timeout_s=float(os.environ["BUILD_LIMIT_S"]),
        )

    def build(self, *options: str, check: bool = True) -> Build:
        """Builds on the server; nothing is downloaded unless `options` say so."""
        self._log.unlink(missing_ok=True)
        run = self.bazel.run("build", *self._build, *options, check=check)
        # Its inputs, torch's files among them, are most of what the log tells of an action.
        return Build(run, [spawn | {"inputs": []} for spawn in Log.read(self._log).spawns])

    def forget(self) -> None:
        """Deletes all outputs, and what Bazel knows of them."""
        self.bazel.run("clean")

    def outputs(self) -> Path:
        """bazel-bin."""
        return Path(self.bazel.output("info", "bazel-bin"))

    def output_base(self) -> Path:
        return Path(self.bazel.output("info", "output_base"))
