"""Attention whose queries, keys or values come from a convolution.

For these, the numbers of a head are not contiguous. PyTorch's kernel of attention requires that, so
Inductor would write out two products and a softmax, whose scores take memory. A copy takes less.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aoti_driver.program.graph_nodes import write_anew

_ATEN: Any = torch.ops.aten
_OPERATOR = _ATEN.scaled_dot_product_attention.default


def made_contiguous(module: fx.GraphModule) -> None:
    """Puts copies into the graph, whose values stay as they are."""
    graph, changed = module.graph, False
    for node in graph.find_nodes(op="call_function", target=_OPERATOR):
        inputs = node.args[:3]
        if len(inputs) != 3 or not all(_has_heads(value) for value in inputs):
            continue
        for place, value in enumerate(inputs):
            assert isinstance(value, fx.Node)
            tensor = value.meta["val"]
            if statically_known_true(tensor.stride(-1) == 1):
                continue
            with graph.inserting_before(node):
                copy = graph.call_function(
                    _ATEN.clone.default, (value,), {"memory_format": torch.contiguous_format}
                )
            copy.meta = {**value.meta, "val": tensor.contiguous()}
            node.update_arg(place, copy)
            changed = True
    write_anew(module, changed)


def _has_heads(value: Any) -> bool:
    """Whether it is [batch, heads, positions, numbers]."""
    tensor = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(tensor, Tensor) and tensor.dim() == 4
