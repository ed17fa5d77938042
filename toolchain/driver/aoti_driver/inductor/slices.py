"""Slices without a beginning or an end, as torch.export leaves them in graphs."""

from __future__ import annotations

import torch
from torch import fx

_END = 2**63 - 1


def explicit_bounds(module: fx.GraphModule) -> None:
    """``x[:n]`` becomes ``x[0:n]``: Inductor (torch 2.13) writes ``None`` into C++ if n depends on
    data.
    """
    for part in module.modules():
        if not isinstance(part, fx.GraphModule):
            continue
        changed = False
        for node in part.graph.find_nodes(op="call_function", target=torch.ops.aten.slice.Tensor):
            for place, name, bound in ((2, "start", 0), (3, "end", _END)):
                if len(node.args) > place and node.args[place] is None:
                    node.update_arg(place, bound)
                    changed = True
                elif len(node.args) <= place and node.kwargs.get(name, 0) is None:
                    node.update_kwarg(name, bound)
                    changed = True
        if changed:
            part.recompile()
