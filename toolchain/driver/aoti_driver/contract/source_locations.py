"""The lines of the user's source that the nodes of a program come from.

This table is separate from the graph, which must not change when only a line number changes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Location:
    """file: its path in the workspace or its import name. module: the submodule's path in the
    model.
    """

    file: str
    line: int
    code: str
    module: str = ""


def place(node: str, location: Location | None) -> str:
    """The place of a node for errors: its line, if that is known."""
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
