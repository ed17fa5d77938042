"""ConvMixer for pictures of 224 x 224: depthwise filters of 9 x 9, and of single pixels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 256
BLOCKS = 6
PATCH = 7
CLASSES = 1000


class Filter(nn.Module):
    """A depthwise filter of 9 x 9, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        conv = nn.Conv2d(WIDTH, WIDTH, 9, padding=4, groups=WIDTH)
        self.layers = nn.Sequential(conv, nn.GELU(), nn.BatchNorm2d(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layers(x)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    parts: list[nn.Module] = [nn.Conv2d(3, WIDTH, PATCH, PATCH), nn.GELU(), nn.BatchNorm2d(WIDTH)]
    for _ in range(BLOCKS):
        parts += [Filter(), nn.Conv2d(WIDTH, WIDTH, 1), nn.GELU(), nn.BatchNorm2d(WIDTH)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, CLASSES)]
    return nn.Sequential(*parts, *head).eval()
