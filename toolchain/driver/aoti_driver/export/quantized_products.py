"""Products with quantized weights under ``precision = "bfloat16"``: their scales become bfloat16.

The operators take the other operand in the dtype of the scales, so that it is rounded as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from aoti_driver.program.signature import written_tensors
from aoti_driver.program.storage import names_by_memory

# Products -> the place of the scales among their operands; the first one is what is multiplied.
SCALES_AT: dict[Any, int] = {
    torch.ops.aten._weight_int4pack_mm_for_cpu.default: 3,
    torch.ops.aten._weight_int8pack_mm.default: 2,
}


def narrow_scales(ep: ExportedProgram) -> set[fx.Node]:
    """Converts the scales that the program reads for nothing else; returns their placeholders."""
    fit = {names[0] for names in names_by_memory(ep) if len(names) == 1} - written_tensors(ep)
    tensors = {**ep.state_dict, **ep.constants}
    targets = {spec.arg.name: spec.target for spec in ep.graph_signature.input_specs}
    narrowed = set()
    for node in ep.graph.find_nodes(op="placeholder"):
        name = targets.get(node.name)
        if name not in fit or not _are_scales(node):
            continue
        tensor = tensors[name]
        if tensor.dtype != torch.float32:
            continue
        narrow = tensor.detach().to(torch.bfloat16)
        if isinstance(tensor, torch.nn.Parameter):
            narrow = torch.nn.Parameter(narrow, requires_grad=tensor.requires_grad)
        (ep.state_dict if name in ep.state_dict else ep.constants)[name] = narrow
        node.meta = {**node.meta, "val": node.meta["val"].to(torch.bfloat16)}
        narrowed.add(node)
    return narrowed


def _are_scales(node: fx.Node) -> bool:
    return bool(node.users) and all(
        user.target in SCALES_AT
        and user.args[SCALES_AT[user.target]] is node
        and user.all_input_nodes.count(node) == 1
        for user in node.users
    )
