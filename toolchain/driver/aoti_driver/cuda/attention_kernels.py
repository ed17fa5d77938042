"""Attention as Triton kernels that never hold all scores (flash attention).

A block of the grid computes some rows of the result for all queries' heads that share a head of
keys: the rows are numbered by (head in its group, place of the query). It goes through the keys
tile by tile with a running softmax. Where there are few rows and many keys, as when one token is
decoded, the keys are split between blocks, and a second kernel merges their partial results.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Optional

import torch
import triton
import triton.language as tl
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.library import triton_op, wrap_triton

# A block that has fewer keys than these spends its time on starting.
LEAST_KEYS = 256
# Offsets in a tile of strides below this one, of up to 256 columns, fit into 32 bits.
_NEAR = 1 << 22


@triton.jit
def flash_attention(
    query,
    key,
    value,
    mask,
    out,
    partial,
    statistics,
    query_batch,
    query_head,
    query_row,
    query_column,
    key_batch,
    key_head,
    key_row,
    key_column,
    value_batch,
    value_head,
    value_row,
    value_column,
    mask_batch,
    mask_head,
    mask_row,
    mask_column,
    out_batch,
    out_head,
    out_row,
    kv_heads,
    group,
    queries,
    keys,
    splits,
    scale: tl.constexpr,
    causal: tl.constexpr,
    masked: tl.constexpr,
    width: tl.constexpr,
    value_width: tl.constexpr,
    padded_width: tl.constexpr,
    padded_value_width: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_keys: tl.constexpr,
    may_split: tl.constexpr,
    far_apart: tl.constexpr,
):
    # One dim of the grid, as the others end at 65535.
    blocks = tl.cdiv(group * queries, tile_rows)
    index = tl.program_id(0)
    rows = (index % blocks) * tile_rows + tl.arange(0, tile_rows)
    index = index // blocks
    split = index % splits
    index = index // splits
    kv_head = (index % kv_heads).to(tl.int64)
    batch = (index // kv_heads).to(tl.int64)

    used = rows < group * queries
    head = kv_head * group + rows // queries
    place = rows % queries
    columns = tl.arange(0, padded_width)
    value_columns = tl.arange(0, padded_value_width)
    inside = columns < width
    value_inside = value_columns < value_width

    # Numbers of 64 bits where all of a tensor is addressed, of 32 within a tile if these suffice.
    tile = tl.arange(0, tile_keys)
    if far_apart:
        tile = tile.to(tl.int64)
        columns = columns.to(tl.int64)
        value_columns = value_columns.to(tl.int64)
    query_rows = batch * query_batch + head * query_head + place.to(tl.int64) * query_row
    q = tl.load(
        query + query_rows[:, None] + columns[None, :] * query_column,
        mask=used[:, None] & inside[None, :],
        other=0.0,
    )
    key_start = key + batch * key_batch + kv_head * key_head
    key_offsets = columns[:, None] * key_column + tile[None, :] * key_row
    value_start = value + batch * value_batch + kv_head * value_head
    value_offsets = tile[:, None] * value_row + value_columns[None, :] * value_column
    mask_rows = batch * mask_batch + head * mask_head + place.to(tl.int64) * mask_row
    mask_offsets = mask_rows[:, None] + tile[None, :] * mask_column

    # The keys of this block's split, and none that are behind all of its queries.
    part = tl.cdiv(tl.cdiv(keys, splits), tile_keys) * tile_keys
    first = split * part
    last = tl.minimum(first + part, keys)
    if causal:
        last = tl.minimum(last, tl.max(tl.where(used, place, 0), 0) + 1)

    largest = tl.full((tile_rows,), float("-inf"), tl.float32)
    total = tl.zeros((tile_rows,), tl.float32)
    sums = tl.zeros((tile_rows, padded_value_width), tl.float32)
    for start in range(first, last, tile_keys):
        places = start + tile
        there = places < last
        far = tl.cast(start, tl.int64)
        k = tl.load(
            key_start + far * key_row + key_offsets,
            mask=inside[:, None] & there[None, :],
            other=0.0,
        )
        scores = tl.dot(q, k, input_precision="ieee") * scale
        if masked:
            weights = tl.load(
                mask + far * mask_column + mask_offsets,
                mask=used[:, None] & there[None, :],
                other=0,
            )
            if mask.dtype.element_ty.is_floating():
                scores += weights.to(tl.float32)
            else:
                scores = tl.where(weights != 0, scores, float("-inf"))
        if causal:
            scores = tl.where(place[:, None] >= places[None, :], scores, float("-inf"))
        scores = tl.where(there[None, :], scores, float("-inf"))

        larger = tl.maximum(largest, tl.max(scores, 1))
        # Of a row that is masked out so far, which would subtract infinity from itself.
        base = tl.where(larger == float("-inf"), 0.0, larger)
        # The difference times log2(e), not the scores: a mask may have the least finite number,
        # which the product would make infinite.
        kept = tl.exp2((largest - base) * 1.4426950408889634)
        shares = tl.exp2((scores - base[:, None]) * 1.4426950408889634)
        total = total * kept + tl.sum(shares, 1)
        v = tl.load(
            value_start + far * value_row + value_offsets,
            mask=there[:, None] & value_inside[None, :],
            other=0.0,
        )
        sums = tl.dot(shares.to(v.dtype), v, sums * kept[:, None], input_precision="ieee")
        largest = larger

    stored = used[:, None] & value_inside[None, :]
    if may_split and splits > 1:
        # The sum and the largest score instead of their log-sum-exp: where a mask has the least
        # finite number, the logarithm of the sum would vanish beside it.
        heads = kv_heads * group
        batches = tl.num_programs(0) // (blocks * splits * kv_heads)
        row = ((split * batches.to(tl.int64) + batch) * heads + head) * queries + place
        tl.store(partial + row[:, None] * value_width + value_columns[None, :], sums, mask=stored)
        tl.store(statistics + row * 2, largest, mask=used)
        tl.store(statistics + row * 2 + 1, total, mask=used)
    else:
        # A row that is masked out whole is zero, as in PyTorch.
        result = sums / tl.where(total == 0.0, 1.0, total)[:, None]
        out_rows = batch * out_batch + head * out_head + place.to(tl.int64) * out_row
        tl.store(
            out + out_rows[:, None] + value_columns[None, :],
            result.to(out.dtype.element_ty),
            mask=stored,
        )


@triton.jit
def merge_attention(
    partial,
    statistics,
    out,
    out_batch,
    out_head,
    out_row,
    heads,
    queries,
    splits,
    value_width: tl.constexpr,
    padded_value_width: tl.constexpr,
):
    """The rows of the result from their parts: one block for each row."""
    row = tl.program_id(0).to(tl.int64)
    rows = tl.num_programs(0).to(tl.int64)
    columns = tl.arange(0, padded_value_width)
    inside = columns < value_width
    largest = float("-inf")
    total = 0.0
    sums = tl.zeros((padded_value_width,), tl.float32)
    for split in range(splits):
        place = split * rows + row
        of_part = tl.load(statistics + place * 2)
        larger = tl.maximum(largest, of_part)
        base = tl.where(larger == float("-inf"), 0.0, larger)
        kept = tl.exp2((largest - base) * 1.4426950408889634)
        added = tl.exp2((of_part - base) * 1.4426950408889634)
        total = total * kept + tl.load(statistics + place * 2 + 1) * added
        part = tl.load(partial + place * value_width + columns, mask=inside, other=0.0)
        sums = sums * kept + part * added
        largest = larger
    result = sums / tl.where(total == 0.0, 1.0, total)
    batch = row // (heads * queries)
    head = row // queries % heads
    start = batch * out_batch + head * out_head + row % queries * out_row
    tl.store(out + start + columns, result.to(out.dtype.element_ty), mask=inside)


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Optional[torch.Tensor],  # noqa: UP045 the schema is inferred from it
    causal: bool,
    scale: float,
    heads_inside: bool,
    tile_rows: int,
    tile_keys: int,
    warps: int,
    stages: int,
    wave: int,
) -> torch.Tensor:
    """Attention of tensors of two to four dims, of which the third last is the head.

    Dims of size 1 of keys, values and mask are repeated; key and value have as many heads, by which
    the number of the query's can be divided. heads_inside: the result's memory is in the order
    batch, query, head. wave: the blocks that a GPU computes at once; the keys are split where there
    are fewer.
    """
    rank = query.dim()
    query, key, value = (_of_four_dims(tensor) for tensor in (query, key, value))
    batch, heads, queries, width = query.shape
    kv_heads, keys = key.shape[1:3]
    value_width = value.shape[3]
    group = heads // kv_heads
    order = (batch, queries, heads) if heads_inside else (batch, heads, queries)
    out = query.new_empty((*order, value_width))
    if heads_inside:
        out = out.transpose(1, 2)

    blocks = (group * queries + tile_rows - 1) // tile_rows * batch * kv_heads
    most = (keys + LEAST_KEYS - 1) // LEAST_KEYS
    splits = torch.sym_max(1, torch.sym_min(wave // torch.sym_max(blocks, 1), most))
    # Of all sizes that a call may have: then the program has no kernel that merges.
    if statically_known_true(keys <= LEAST_KEYS) or statically_known_true(2 * blocks > wave):
        splits = 1
    may_split = not (isinstance(splits, int) and splits == 1)
    if may_split:
        # No rows where the keys of a call are not split.
        rows = splits * torch.sym_min(splits - 1, 1) * batch * heads * queries
        # Never empty: PyTorch would ask whether it is, and make that a condition of the program.
        partial = query.new_empty((rows * value_width + 2,), dtype=torch.float32)
        statistics = query.new_empty((rows * 2 + 2,), dtype=torch.float32)
    else:
        partial = statistics = out

    steps = [_steps(tensor) for tensor in (query, key, value)]
    steps_of_mask = [0] * 4 if mask is None else _steps(_of_four_dims(mask))
    within_tile = [query.stride(3), *key.stride()[2:], *value.stride()[2:], steps_of_mask[3]]
    padded_value_width = max(16, triton.next_power_of_2(value_width))
    wrap_triton(flash_attention)[(blocks * splits,)](
        query,
        key,
        value,
        query if mask is None else mask,
        out,
        partial,
        statistics,
        *steps[0],
        *steps[1],
        *steps[2],
        *steps_of_mask,
        *out.stride()[:3],
        kv_heads,
        group,
        queries,
        keys,
        splits,
        scale=scale,
        causal=causal,
        masked=mask is not None,
        width=width,
        value_width=value_width,
        padded_width=max(16, triton.next_power_of_2(width)),
        padded_value_width=padded_value_width,
        tile_rows=tile_rows,
        tile_keys=tile_keys,
        may_split=may_split,
        far_apart=not all(statically_known_true(step < _NEAR) for step in within_tile),
        num_warps=warps,
        num_stages=stages,
    )
    if may_split:
        wrap_triton(merge_attention)[(batch * heads * queries * torch.sym_min(splits - 1, 1),)](
            partial,
            statistics,
            out,
            *out.stride()[:3],
            heads,
            queries,
            splits,
            value_width=value_width,
            padded_value_width=padded_value_width,
            num_warps=1,
        )
    for _ in range(4 - rank):
        out = out.squeeze(0)
    return out


attention = triton_op("rules_aoti::attention", attend, mutates_args={})


def _of_four_dims(tensor):
    for _ in range(4 - tensor.dim()):
        tensor = tensor.unsqueeze(0)
    return tensor


def _steps(tensor):
    """The strides, without those of dims that are repeated."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return [0 if isinstance(size, int) and size == 1 else stride for size, stride in sizes]
