"""Which convolutions ``precision = "bfloat16"`` computes with weights in bfloat16."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

_aten = torch.ops.aten

CONVOLUTIONS = (
    _aten.conv1d.default,
    _aten.conv1d.padding,
    _aten.conv2d.default,
    _aten.conv2d.padding,
    _aten.conv3d.default,
    _aten.conv3d.padding,
)
# With fewer input channels in a group, rounding the input takes longer than the products save.
_FEWEST_CHANNELS = 16


def weights(ep: ExportedProgram) -> dict[str, fx.Node]:
    """The parameters that become bfloat16, by name: all that the program does with one is to
    multiply by it in convolutions.
    """
    inputs = {node.name: node for node in ep.graph.find_nodes(op="placeholder")}
    return {
        spec.target: inputs[spec.arg.name]
        for spec in ep.graph_signature.input_specs
        if spec.kind is InputKind.PARAMETER
        and spec.target is not None
        and _is_suitable(inputs[spec.arg.name])
    }


def _is_suitable(weight: fx.Node) -> bool:
    value = weight.meta["val"]
    if value.dtype != torch.float32 or value.dim() not in (3, 4, 5) or not weight.users:
        return False
    channels = value.shape[1]
    if not isinstance(channels, int) or channels < _FEWEST_CHANNELS or channels % 2:
        return False
    return all(_is_use(user, weight) for user in weight.users)


def _is_use(node: fx.Node, weight: fx.Node) -> bool:
    if node.target not in CONVOLUTIONS or node.kwargs or node.args[1] is not weight:
        return False
    x: Any = node.args[0]
    return weight not in (x, *node.args[2:]) and x.meta["val"].dtype == torch.float32
