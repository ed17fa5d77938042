"""Embeddings, distances, histograms, bilinear layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from aoti_driver.cuda.wide import wide

_SUM, _MEAN, _MAX = range(3)


def _embedding_bag(
    table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, ...]:
    if include_last_offset:
        offsets = offsets.narrow(0, 0, offsets.shape[0] - 1)
    places = torch.arange(indices.shape[0], device=table.device, dtype=offsets.dtype)
    bags = torch.searchsorted(offsets, places, right=True) - 1
    rows = table[indices]
    counted = (indices != padding_idx).to(torch.int64)
    counts = torch.zeros_like(offsets, dtype=torch.int64).index_add(0, bags, counted)
    zeros = torch.zeros((offsets.shape[0], table.shape[1]), dtype=table.dtype, device=table.device)
    if mode == _MAX:
        lowest = torch.full_like(zeros, float("-inf"))
        rows = torch.where(counted.unsqueeze(-1) > 0, rows, float("-inf"))
        every = bags.unsqueeze(-1).expand(rows.shape)
        result = lowest.scatter_reduce(0, every, rows, "amax")
        result = torch.where(counts.unsqueeze(-1) > 0, result, 0.0)
        found = torch.where(rows == result[bags], indices.unsqueeze(-1), table.shape[0])
        most = torch.full_like(result, table.shape[0], dtype=torch.int64)
        return result, bags, counts, most.scatter_reduce(0, every, found, "amin")
    values = wide(rows)
    if per_sample_weights is not None:
        values = values * per_sample_weights.unsqueeze(-1)
    values = torch.where(counted.unsqueeze(-1) > 0, values, 0.0)
    result = zeros.to(values.dtype).index_add(0, bags, values)
    if mode == _MEAN:
        result = result / counts.clamp_min(1).unsqueeze(-1)
    return result.to(table.dtype), bags, counts, counts


def _embedding_renorm(table: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shortens the rows that are used, if they are longer than max_norm."""
    rows = wide(table)
    norms = _norm(rows, norm_type).unsqueeze(-1)
    used = torch.zeros(table.shape[0], dtype=torch.bool, device=table.device)
    used = used.index_fill(0, indices.reshape(-1), True).unsqueeze(-1)
    shorter = (rows * (max_norm / (norms + 1e-7))).to(table.dtype)
    return torch.where(used & (norms > max_norm), shorter, table)


def _trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The sum of products of three, which a bilinear layer is. Each is given further dimensions."""
    product: Any = 1
    for x, added in ((a, expand1), (b, expand2), (c, expand3)):
        factor = wide(x)
        for dim in added:
            factor = factor.unsqueeze(dim)
        product = product * factor
    result: Tensor = product.sum(list(sumdim)).to(a.dtype)
    return result


def _norm(differences: Tensor, p: float) -> Tensor:
    if p == 0:
        return (differences != 0).to(differences.dtype).sum(-1)
    if p == 1:
        return differences.abs().sum(-1)
    if p == 2:
        return (differences * differences).sum(-1).sqrt()
    if p == float("inf"):
        return differences.abs().amax(-1)
    return differences.abs().pow(p).sum(-1).pow(1 / p)


def _cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    return _norm(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def _pdist(x: Tensor, p: float = 2) -> Tensor:
    rows, columns = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    return _norm(x[rows] - x[columns], p)


def _histc(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    x = x.reshape(-1)
    values = wide(x)
    if min == max:
        least, most = values.amin(), values.amax()
        same = least == most
        least, most = torch.where(same, least - 1, least), torch.where(same, most + 1, most)
        inside = torch.ones_like(values, dtype=torch.bool)
    else:
        least, most = min, max
        inside = (values >= min) & (values <= max)
    places = ((values - least) * bins / (most - least)).to(torch.int64).clamp(0, bins - 1)
    counts = torch.zeros(bins, dtype=torch.int64, device=x.device)
    return counts.index_add(0, torch.where(inside, places, 0), inside.to(torch.int64)).to(x.dtype)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._cdist_forward.default": _cdist,
    "aten._embedding_bag.default": _embedding_bag,
    "aten._embedding_bag_forward_only.default": _embedding_bag,
    "aten._pdist_forward.default": _pdist,
    "aten._trilinear.default": _trilinear,
    "aten.embedding_renorm.default": _embedding_renorm,
    "aten.histc.default": _histc,
}
