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
TRANSPOSED = (
    _aten.conv_transpose1d.default,
    _aten.conv_transpose2d.input,
    _aten.conv_transpose3d.input,
)
# With fewer input channels in a group, rounding the input takes longer than the products save.
_FEWEST_CHANNELS = 16
# With one group, each of them is multiplied by many weights. Two would make one pair.
_FEWEST_OF_ONE_GROUP = 3


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
    return all(_is_use(user, weight) for user in weight.users)


def _is_use(node: fx.Node, weight: fx.Node) -> bool:
    transposed = node.target in TRANSPOSED
    if not transposed and node.target not in CONVOLUTIONS:
        return False
    if node.kwargs or node.args[1] is not weight:
        return False
    x: Any = node.args[0]
    if weight in (x, *node.args[2:]) or x.meta["val"].dtype != torch.float32:
        return False
    groups = node.args[6] if len(node.args) > 6 else 1
    channels = weight.meta["val"].shape[0 if transposed else 1]
    if not isinstance(groups, int) or not isinstance(channels, int):
        return False
    if groups == 1:
        return channels >= _FEWEST_OF_ONE_GROUP
    channels = channels // groups if transposed else channels
    return channels >= _FEWEST_CHANNELS and channels % 2 == 0
