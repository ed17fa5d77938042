"""Classes of rows of a table, as TabNet: each step picks a few columns by a sparsemax."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

COLUMNS = 54
CLASSES = 7
DECISION = 64
ATTENTION = 64
WIDTH = DECISION + ATTENTION
STEPS = 4
GHOST = 128
RELAXATION = 1.3


def sparsemax(x: Tensor) -> Tensor:
    """The nearest point of the simplex, along the last dimension."""
    ordered = x.sort(dim=-1, descending=True).values
    sums = ordered.cumsum(-1) - 1
    ranks = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    count = (ranks * ordered > sums).sum(-1, keepdim=True)
    threshold = sums.gather(-1, count - 1) / count.to(x.dtype)
    return torch.clamp(x - threshold, min=0)


class GhostNorm(nn.Module):
    """Batch normalisation of 128 rows at a time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=0.02)

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.split(x, GHOST, 1)
        return torch.cat([self.norm(y.flatten(0, 1)).view(y.shape) for y in parts], 1)


class Gated(nn.Module):
    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear, self.norm = linear, GhostNorm(linear.out_features)

    def forward(self, x: Tensor) -> Tensor:
        return functional.glu(self.norm(self.linear(x)), -1)


def linear(inputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, 2 * WIDTH, bias=False)
    nn.init.normal_(layer.weight, std=2 / math.sqrt(inputs))
    return layer


class Features(nn.Module):
    """Two layers whose weights all steps share, and two of this step alone"""

    def __init__(self, shared: list[nn.Linear]) -> None:
        super().__init__()
        own = [linear(WIDTH) for _ in range(2)]
        self.start = Gated(shared[0])
        self.layers = nn.ModuleList(Gated(layer) for layer in (*shared[1:], *own))

    def forward(self, x: Tensor) -> Tensor:
        x = self.start(x)
        for layer in self.layers:
            x = (x + layer(x)) * math.sqrt(0.5)
        return x


class Decisions(nn.Module):
    """float32[batch, 512, 54] to float32[batch, 512, 7] and float32[batch, 512, 54]

    Classes, and how much each column mattered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(COLUMNS, momentum=0.01)
        shared = [linear(COLUMNS), linear(WIDTH)]
        self.start = Features(shared)
        self.features = nn.ModuleList(Features(shared) for _ in range(STEPS))
        self.attention = nn.ModuleList(
            nn.Sequential(nn.Linear(ATTENTION, COLUMNS, bias=False), GhostNorm(COLUMNS))
            for _ in range(STEPS)
        )
        self.classes = nn.Linear(DECISION, CLASSES, bias=False)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(rows.flatten(0, 1)).view(rows.shape)
        attended = self.start(x)[..., DECISION:]
        prior, total = torch.ones_like(x), torch.zeros_like(attended)
        mattered = torch.zeros_like(x)
        for attention, features in zip(self.attention, self.features, strict=True):
            mask = sparsemax(attention(attended) * prior)
            prior = prior * (RELAXATION - mask)
            decision, attended = torch.split(features(mask * x), [DECISION, ATTENTION], -1)
            decision = functional.relu(decision)
            total = total + decision
            mattered = mattered + mask * decision.sum(-1, keepdim=True)
        return self.classes(total), mattered


def build() -> nn.Module:
    torch.manual_seed(0)
    return Decisions().eval()
