"""The nodes of an exported program."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.export import ExportedProgram


def nodes_of(ep: ExportedProgram) -> Iterator[torch.fx.Node]:
    """The program's nodes, then the nodes of its branches and loops that have other names."""
    seen: set[str] = set()
    for module in ep.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.name not in seen:
                    seen.add(node.name)
                    yield node
