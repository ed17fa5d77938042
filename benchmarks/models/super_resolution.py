"""A network that doubles the height and the width of a picture."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHANNELS = 48
BLOCKS = 6


class Block(nn.Module):
    """Two convolutions and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
            nn.PReLU(CHANNELS),
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layers(x)
        return y


def build() -> nn.Module:
    """float32[batch, 3, height, width] to float32[batch, 3, 2 * height, 2 * width]"""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, CHANNELS, 3, padding=1),
        *(Block() for _ in range(BLOCKS)),
        nn.Conv2d(CHANNELS, 4 * CHANNELS, 3, padding=1),
        nn.PixelShuffle(2),
        nn.LeakyReLU(0.1),
        nn.Conv2d(CHANNELS, 3, 3, padding=1),
    ).eval()
