"""Finds the line of the user's source that a node of the program comes from."""

from __future__ import annotations

import re
from pathlib import Path

from torch.export import ExportedProgram
from torch.fx import Node

from aoti_driver.contract import source_locations
from aoti_driver.contract.source_locations import Location
from aoti_driver.export.source import SourceTree
from aoti_driver.program.nodes import nodes_of

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in \S+(?:\n[ \t]+(?!File ")(.*))?')
_TORCH = re.compile(r"(?:^|/)torch/")


def location(node: Node, tree: SourceTree) -> Location | None:
    """The innermost line of the user's source from which the node was traced."""
    for path, line, code in reversed(_FRAME.findall(node.meta.get("stack_trace") or "")):
        if tree.contains(path):
            name = tree.import_name(path)
            if not of_torch(name):
                return Location(name, int(line), code.strip(), _module(node))
    return None


def of_torch(name: str) -> bool:
    """Whether a file of the tree, by its name, is PyTorch's own."""
    return _TORCH.search(name) is not None


def write(ep: ExportedProgram, tree: SourceTree, path: Path) -> None:
    """The table of all nodes whose :class:`Location` is known."""
    table = {
        node.name: place for node in nodes_of(ep) if (place := location(node, tree)) is not None
    }
    path.write_text(source_locations.to_json(table), encoding="utf-8")


def _module(node: Node) -> str:
    stack = node.meta.get("nn_module_stack")
    return str(list(stack.values())[-1][0]) if stack else ""
