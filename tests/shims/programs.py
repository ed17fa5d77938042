"""Small models: one that the slim runtime does not cover, and others that it does."""

from __future__ import annotations

import torch
from torch import nn


class Scores(nn.Module):
    """float32[batch, 8] -> float32[batch, 3]: each row sums to 1."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 8, generator=generator))
        self.bias = nn.Parameter(torch.randn(3, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias).softmax(-1)


class Decomposed(nn.Module):
    """float32[4, 4] -> the magnitudes of its eigenvalues, float32[4], the largest first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = torch.linalg.eigvals(x).abs().sort(descending=True).values
        return values


class Lookup(nn.Module):
    """int64[rows] -> float32[rows, 64]: each row of a table, found by a number computed of it."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(1000, 64, generator=generator))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        # No input is an index by itself: only the kernel can tell whether one is in range.
        return nn.functional.embedding(ids * 2 - ids, self.table)


class Sampler(nn.Module):
    """The k most likely of the last dim of float32[batch, 16], and how likely they are."""

    def forward(
        self, x: torch.Tensor, k: int, temperature: float = 1.0, order: str = "first"
    ) -> tuple[torch.Tensor, torch.Tensor]:
        likely, indices = (x / temperature).softmax(-1).topk(k, -1, largest=order == "first")
        return likely, indices * temperature


class Recurrent(nn.Module):
    """float32[batch, steps, 5] -> float32[batch, steps, 8] of an LSTM, and float32[steps, 7] of a
    GRU, which goes on where the call before ended.
    """

    memory: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True, proj_size=4)
        self.gru = nn.GRU(8, 7)
        self.register_buffer("memory", torch.zeros(1, 7))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, _ = self.lstm(x)
        z, last = self.gru(y.mean(0), self.memory)
        self.memory.copy_(last)
        return y, z
