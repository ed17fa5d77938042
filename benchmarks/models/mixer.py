"""MLP-Mixer: layers over the patches of a picture, and over the channels of each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

PATCH = 16
PATCHES = 196
WIDTH = 256
DEPTH = 8
CLASSES = 1000


def layers(width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.places, self.channels = layers(PATCHES, 2 * PATCHES), layers(WIDTH, 4 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.places(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norms[1](x))
        return x


class Mixer(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        result: Tensor = self.head(self.norm(self.blocks(x)).mean(1))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Mixer().eval()
