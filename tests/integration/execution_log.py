"""Reads which actions a build ran from Bazel's --execution_log_json_file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Log:
    """The actions that ran, or whose outputs came from a cache: those that were out of date."""

    spawns: tuple[dict[str, Any], ...]

    @staticmethod
    def read(path: Path) -> Log:
        text = path.read_text(encoding="utf-8")
        decoder = json.JSONDecoder()
        spawns = []
        at = 0
        while at < len(text):
            spawn, at = decoder.raw_decode(text, at)
            spawns.append(spawn)
            while at < len(text) and text[at].isspace():
                at += 1
        return Log(tuple(spawns))

    @property
    def actions(self) -> Counter[str]:
        """How often each kind of action occurs, by its mnemonic."""
        return Counter(spawn["mnemonic"] for spawn in self.spawns)

    def outputs(self, mnemonic: str, suffix: str) -> set[str]:
        """The files with that suffix that actions of one kind wrote."""
        return {
            output
            for spawn in self.spawns
            if spawn["mnemonic"] == mnemonic
            for output in spawn["listedOutputs"]
            if output.endswith(suffix)
        }
