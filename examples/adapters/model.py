"""A layer with a low-rank update (LoRA) whose tensors are an adapter: a file of their own."""

import torch
from torch import nn

RANK = 4  # the largest that an adapter may have


class LowRankLinear(nn.Linear):
    """A linear layer plus ``up @ down``, which is 0 until an adapter says otherwise."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__(inputs, outputs)
        self.down = nn.Parameter(torch.zeros(rank, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + (x @ self.down.T) @ self.up.T


class Scorer(nn.Module):
    """Features to scores of three classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LowRankLinear(8, 3, RANK)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.layer(features)
        return scores
