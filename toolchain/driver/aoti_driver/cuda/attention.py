"""Replaces scaled_dot_product_attention by the kernels of attention_kernels.py.

What they can't compute stays, and Inductor writes it as products and a softmax.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aoti_driver.cuda import attention_tiles
from aoti_driver.cuda.archs import Arch

_OPERATOR = torch.ops.aten.scaled_dot_product_attention.default
# Its arguments in the schema's order.
_DEFAULTS = {
    "query": None,
    "key": None,
    "value": None,
    "attn_mask": None,
    "dropout_p": 0.0,
    "is_causal": False,
    "scale": None,
    "enable_gqa": False,
}
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_WIDEST = 256
# As good as unlimited for the choice of a tile.
_LONG = 1 << 20


def in_kernels(module: fx.GraphModule, archs: Sequence[Arch]) -> None:
    """archs: the lowest first."""
    for node in module.graph.find_nodes(op="call_function", target=_OPERATOR):
        _replace(node, archs)
    module.recompile()


def _replace(node: fx.Node, archs: Sequence[Arch]) -> None:
    given: dict[str, Any] = {**_DEFAULTS, **dict(zip(_DEFAULTS, node.args, strict=False))}
    given |= node.kwargs
    nodes = [given[name] for name in ("query", "key", "value", "attn_mask")]
    query, key, value = (operand.meta["val"] for operand in nodes[:3])
    mask = nodes[3].meta["val"] if nodes[3] is not None else None
    if given["dropout_p"] or (mask is not None and given["is_causal"]):
        return
    if not _computable(query, key, value, given["enable_gqa"]):
        return
    if mask is not None and not _broadcast(mask, query, key):
        return
    width = query.shape[-1]
    scale = 1 / math.sqrt(width) if given["scale"] is None else given["scale"]
    if not isinstance(scale, (int, float)) or not math.isfinite(scale):
        return
    tile = attention_tiles.choose(
        _rows(query, key), width, value.shape[-1], query.dtype.itemsize, archs
    )
    if tile is None:
        return

    # Triton is there where code for GPUs is generated.
    importlib.import_module("aoti_driver.cuda.attention_kernels")
    with node.graph.inserting_before(node):
        attended = node.graph.call_function(
            torch.ops.rules_aoti.attention.default,
            (
                *nodes,
                given["is_causal"],
                float(scale),
                _heads_inside(node.meta["val"]),
                tile.rows,
                tile.keys,
                tile.warps,
                tile.stages,
                archs[0].multiprocessors,
            ),
        )
    attended.meta.update(node.meta)
    node.replace_all_uses_with(attended)
    node.graph.erase_node(node)


def _computable(query: Tensor, key: Tensor, value: Tensor, grouped: bool) -> bool:
    """Whether the dtypes and sizes are among those of the kernels, whatever the call's sizes."""
    if not query.dim() == key.dim() == value.dim() or not 2 <= query.dim() <= 4:
        return False
    if query.dtype not in _DTYPES or not query.dtype == key.dtype == value.dtype:
        return False
    widths = (query.shape[-1], key.shape[-1], value.shape[-1])
    if not all(isinstance(width, int) and 0 < width <= _WIDEST for width in widths):
        return False
    if widths[0] != widths[1] or not _same(key.shape[-2], value.shape[-2]):
        return False
    if query.dim() < 3:
        return True
    heads, kv_heads, value_heads = (tensor.shape[-3] for tensor in (query, key, value))
    if not _same(kv_heads, value_heads):
        return False
    if grouped:
        whole = all(isinstance(count, int) and count for count in (heads, kv_heads))
        if not whole or heads % kv_heads:
            return False
    elif not _same(kv_heads, heads) and not _is_one(kv_heads):
        return False
    if query.dim() < 4:
        return True
    return all(_is_one(t.shape[0]) or _same(t.shape[0], query.shape[0]) for t in (key, value))


def _broadcast(mask: Tensor, query: Tensor, key: Tensor) -> bool:
    """Whether it is known which dims of the mask are repeated."""
    if mask.dim() > query.dim() or not (mask.dtype == torch.bool or mask.is_floating_point()):
        return False
    sizes = (*query.shape[:-1], key.shape[-2])
    pairs = zip(reversed(mask.shape), reversed(sizes), strict=False)
    return all(_is_one(size) or _same(size, whole) for size, whole in pairs)


def _same(first: Any, second: Any) -> bool:
    return bool(statically_known_true(first == second))


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _rows(query: Tensor, key: Tensor) -> tuple[int, int]:
    """The least and the most rows that share the keys of one head."""
    heads, kv_heads = (t.shape[-3] if t.dim() > 2 else 1 for t in (query, key))
    grouped = isinstance(heads, int) and isinstance(kv_heads, int)
    group = heads // kv_heads if grouped else 1
    least, most = _bounds(query.shape[-2])
    return least * group, most * group


def _bounds(size: Any) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    bounds = size.node.shape_env.bound_sympy(size.node.expr)
    return max(0, int(bounds.lower)), _LONG if bounds.upper > _LONG else int(bounds.upper)


def _heads_inside(result: Tensor) -> bool:
    """Whether the memory of PyTorch's own result is in the order batch, query, head."""
    return result.dim() == 4 and bool(statically_known_true(result.stride(1) < result.stride(2)))
