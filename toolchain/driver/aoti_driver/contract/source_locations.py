"""Where in the user's source the nodes of a program come from.

A table of its own beside the graph, which must not change when only a line number does.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Location:
    """file: as the workspace or an import calls it. module: the submodule's path in the model."""

    file: str
    line: int
    code: str
    module: str = ""


def place(node: str, location: Location | None) -> str:
    """How an error names the place of a node: its line, where that is known."""
    if location is None:
        return f"node {node} of the graph"
    module = f", in {location.module}" if location.module else ""
    return f"{location.file}:{location.line}: {location.code}{module}"


def to_json(table: Mapping[str, Location]) -> str:
    """The table from a node's name to its location."""
    entries = {name: dataclasses.asdict(location) for name, location in table.items()}
    return json.dumps(entries, indent=1, sort_keys=True) + "\n"


def from_json(text: str) -> dict[str, Location]:
    return {name: Location(**entry) for name, entry in json.loads(text).items()}
