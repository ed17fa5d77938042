"""PoolFormer for pictures of 224 x 224: means of neighbours in the place of attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Channels and blocks of each stage.
STAGES = ((64, 2), (128, 2), (320, 4), (512, 2))
CLASSES = 1000


class Block(nn.Module):
    """The difference of a pixel and the mean around it, and two layers, each with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for _ in range(2))
        self.scales = nn.Parameter(torch.full((2, width, 1, 1), 0.1))
        self.mean = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.layers = nn.Sequential(
            nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        x = x + self.scales[0] * (self.mean(y) - y)
        result: Tensor = x + self.scales[1] * self.layers(self.norms[1](x))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    channels = 3
    for i, (width, count) in enumerate(STAGES):
        parts.append(
            nn.Conv2d(channels, width, 7 if i == 0 else 3, 4 if i == 0 else 2, 2 if i == 0 else 1)
        )
        parts += [Block(width) for _ in range(count)]
        channels = width
    head = [nn.GroupNorm(1, channels), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, *head, nn.Linear(channels, CLASSES)).eval()
