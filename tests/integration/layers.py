"""A model with many kernels: each layer's differs from the others by a number."""

from __future__ import annotations

import torch
from torch import nn


class Layers(nn.Module):
    """float32[rows, 4] -> the same."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.numbers = [float(number) for number in range(24)]
        self.numbers[20] = 99.0
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in self.numbers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, number in zip(self.layers, self.numbers):
            x = torch.relu(layer(x)) + number
        return x
