"""DLRM: clicks from dense features and bags of categories, with pairwise dot interactions."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

DENSE = 13
WIDTH = 128
TABLES = (1460, 583, 9973, 4093, 305, 24, 8811, 633, 3, 6091, 5683, 2173)
BAG = 4
COLLISIONS = 4
# Tables from here on are large: each is kept as a product of quotients and remainders.
QUOTIENT_FROM = 8000
# Small tables have narrower vectors, which are projected up.
NARROW_BELOW = 100
BOTTOM = (DENSE, 512, 256, WIDTH)
TOP = (1024, 1024, 512, 256, 1)
THRESHOLD = 1e-4


def mlp(sizes: tuple[int, ...], sigmoid_at: int = -1) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (n, m) in enumerate(itertools.pairwise(sizes)):
        linear = nn.Linear(n, m)
        nn.init.normal_(linear.weight, 0.0, math.sqrt(2.0 / n))
        nn.init.normal_(linear.bias, 0.0, math.sqrt(1.0 / m))
        layers.append(linear)
        layers.append(nn.Sigmoid() if i == sigmoid_at else nn.ReLU())
    return nn.Sequential(*layers)


def table(rows: int, width: int) -> nn.EmbeddingBag:
    bag = nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
    nn.init.uniform_(bag.weight, -0.5, 0.5)
    return bag


class QuotientRemainderBag(nn.Module):
    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.quotients = table(math.ceil(rows / COLLISIONS), width)
        self.remainders = table(COLLISIONS, width)

    def forward(self, indices: Tensor, offsets: Tensor, per_sample_weights: Tensor) -> Tensor:
        quotient = (indices / COLLISIONS).long()
        remainder = torch.remainder(indices, COLLISIONS).long()
        left = self.quotients(quotient, offsets, per_sample_weights=per_sample_weights)
        right = self.remainders(remainder, offsets, per_sample_weights=per_sample_weights)
        product: Tensor = left * right
        return product


class ProjectedBag(nn.Module):
    def __init__(self, rows: int, narrow: int, width: int) -> None:
        super().__init__()
        self.bag = table(rows, narrow)
        self.proj = nn.Linear(narrow, width, bias=False)

    def forward(self, indices: Tensor, offsets: Tensor, per_sample_weights: Tensor) -> Tensor:
        summed = self.bag(indices, offsets=offsets, per_sample_weights=per_sample_weights)
        projected: Tensor = self.proj(summed)
        return projected


class DLRM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb_l = nn.ModuleList()
        for rows in TABLES:
            if rows >= QUOTIENT_FROM:
                self.emb_l.append(QuotientRemainderBag(rows, WIDTH))
            elif rows < NARROW_BELOW:
                self.emb_l.append(ProjectedBag(rows, WIDTH // 8, WIDTH))
            else:
                self.emb_l.append(table(rows, WIDTH))
        self.v_w_l = nn.ParameterList(nn.Parameter(torch.rand(rows) + 0.25) for rows in TABLES)
        vectors = len(TABLES) + 1
        pairs = vectors * (vectors - 1) // 2
        self.bot_l = mlp(BOTTOM)
        self.top_l = mlp((WIDTH + pairs, *TOP), sigmoid_at=len(TOP) - 1)

    def apply_emb(self, sparse: Tensor) -> list[Tensor]:
        batch = sparse.size(0)
        offsets = torch.arange(0, batch * BAG, BAG, device=sparse.device)
        ly = []
        for k, emb in enumerate(self.emb_l):
            indices = (sparse[:, k] % TABLES[k]).contiguous().view(-1)
            weights = self.v_w_l[k].gather(0, indices)
            ly.append(emb(indices, offsets, per_sample_weights=weights))
        return ly

    def interact_features(self, x: Tensor, ly: list[Tensor]) -> Tensor:
        batch, d = x.shape
        t = torch.cat([x, *ly], dim=1).view((batch, -1, d))
        z = torch.bmm(t, torch.transpose(t, 1, 2))
        _, ni, nj = z.shape
        li, lj = torch.triu_indices(ni, nj, offset=1, device=x.device)
        zflat = z[:, li, lj]
        return torch.cat([x, zflat / math.sqrt(d)], dim=1)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        # Counts are skewed, some of them negative: the usual logarithm.
        x = self.bot_l(torch.log(dense.clamp(min=0.0) + 1))
        z = self.interact_features(x, self.apply_emb(sparse))
        p = self.top_l(z)
        return torch.clamp(p, min=THRESHOLD, max=1.0 - THRESHOLD)


def build() -> nn.Module:
    torch.manual_seed(0)
    model = DLRM()
    # What a bag sums is kept of order 1.
    with torch.no_grad():
        for parameter in model.v_w_l:
            parameter.div_(math.sqrt(BAG))
    return model.eval()
