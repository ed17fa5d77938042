"""A selective state space model (Mamba) over words: its recurrence is a sum over earlier words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 20000
WIDTH = 128
INNER = 2 * WIDTH
STATES = 16
RANK = 8
KERNEL = 4
DEPTH = 2
CLASSES = 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.widen = nn.Linear(WIDTH, 2 * INNER)
        self.depthwise = nn.Conv1d(INNER, INNER, KERNEL, groups=INNER)
        self.parameters_of = nn.Linear(INNER, RANK + 2 * STATES)
        self.step = nn.Linear(RANK, INNER)
        self.decay = nn.Parameter(torch.rand(STATES) / 8)
        self.narrow = nn.Linear(INNER, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y, gate = self.widen(self.norm(x)).chunk(2, -1)
        y = functional.pad(y.transpose(1, 2), (KERNEL - 1, 0))
        y = functional.silu(self.depthwise(y).transpose(1, 2))
        rank, into, out = self.parameters_of(y).split((RANK, STATES, STATES), -1)
        step = functional.softplus(self.step(rank))
        # The state after a word is the sum of what earlier words put in, each with the decay since.
        passed = (step[..., None] * self.decay).cumsum(1)
        added = ((step * y)[..., None] * into[:, :, None, :] * passed.exp()).cumsum(1)
        y = (added * (-passed).exp() * out[:, :, None, :]).sum(-1)
        result: Tensor = x + self.narrow(y * functional.silu(gate))
        return result


class Scan(nn.Module):
    """int64[batch, words] to float32[batch, 16]"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.head(self.blocks(self.embed(words)).mean(1))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Scan().eval()
