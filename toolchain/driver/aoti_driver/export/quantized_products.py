"""Products with quantized weights under ``precision = "bfloat16"``: their scales become bfloat16.

The operators take the other operand in the dtype of the scales, so that it is rounded as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

# Products -> the place of the scales among their operands; the first one is what is multiplied.
SCALES_AT: dict[Any, int] = {
    torch.ops.aten._weight_int4pack_mm_for_cpu.default: 3,
    torch.ops.aten._weight_int8pack_mm.default: 2,
}


def narrow_scales(ep: ExportedProgram) -> set[fx.Node]:
    """Converts the scales that the program reads for nothing else; returns their placeholders."""
    signature = ep.graph_signature
    written = {*signature.buffers_to_mutate.values(), *signature.parameters_to_mutate.values()}
    tensors = {**ep.state_dict, **ep.constants}
    sharing: dict[int, int] = {}
    for tensor in tensors.values():
        if isinstance(tensor, torch.Tensor):
            memory = tensor.untyped_storage().data_ptr()
            sharing[memory] = sharing.get(memory, 0) + 1
    targets = {spec.arg.name: spec.target for spec in signature.input_specs}
    narrowed = set()
    for node in ep.graph.find_nodes(op="placeholder"):
        name = targets.get(node.name)
        if name is None or name in written or not _are_scales(node):
            continue
        tensor = tensors[name]
        if tensor.dtype != torch.float32 or sharing[tensor.untyped_storage().data_ptr()] > 1:
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
