"""Actions in a film, as R(2+1)D: convolutions over space, and then over time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 400


def factored(inputs: int, between: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """A convolution over rows and columns, and one over time."""
    return nn.Sequential(
        nn.Conv3d(inputs, between, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
        nn.BatchNorm3d(between),
        nn.ReLU(),
        nn.Conv3d(between, outputs, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
        nn.BatchNorm3d(outputs),
    )


class Block(nn.Module):
    """Two factored convolutions and a residual."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        between = inputs * outputs * 27 // (inputs * 9 + 3 * outputs)
        self.first = factored(inputs, between, outputs, stride)
        between = outputs * outputs * 27 // (outputs * 9 + 3 * outputs)
        self.second = factored(outputs, between, outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Sequential(
                nn.Conv3d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm3d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


def build() -> nn.Module:
    """float32[batch, 3, 8, 112, 112] to float32[batch, 400]"""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv3d(3, 45, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
        nn.BatchNorm3d(45),
        nn.ReLU(),
        nn.Conv3d(45, 32, (3, 1, 1), padding=(1, 0, 0), bias=False),
        nn.BatchNorm3d(32),
        nn.ReLU(),
        Block(32, 32, 1),
        Block(32, 64, 2),
        Block(64, 128, 2),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(128, CLASSES),
    ).eval()
