"""A room only includes headers of the rooms that its BUILD file names, which are all further down
in the table."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SLIM = Path(__file__).parents[1]
PAGE = Path(__file__).parents[3] / "docs/slim_runtime.md"
# From the top down, in the page's table.
ROOMS = re.findall(r"^\| `(\w+)/` \|", PAGE.read_text("utf-8"), re.MULTILINE)


def named(room: str) -> set[str]:
    """The ``rooms`` of the room's target."""
    module = ast.parse((SLIM / room / "BUILD.bazel").read_text("utf-8"))
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "rooms":
            return set(ast.literal_eval(node.value))
    return set()


def included(room: str) -> set[str]:
    sources = [path for path in (SLIM / room).iterdir() if path.suffix in (".cc", ".h")]
    assert sources
    text = "".join(path.read_text("utf-8") for path in sources)
    return set(re.findall(r'^#include "runtime/slim/(\w+)/', text, re.MULTILINE)) - {room}


def test_the_page_has_every_room() -> None:
    folders = {path.parent.name for path in SLIM.glob("*/BUILD.bazel")} - {"tests"}
    assert sorted(ROOMS) == sorted(folders)


@pytest.mark.parametrize("room", ROOMS)
def test_includes(room: str) -> None:
    assert included(room) == named(room)
    assert named(room) <= set(ROOMS[ROOMS.index(room) + 1 :])
