"""A stage of SegFormer: attention over an image that is narrowed for keys and values."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 64
HEADS = 2
NARROWED = 4
DEPTH = 3
CLASSES = 19


def image(x: Tensor, side: int) -> Tensor:
    """[batch, places, channels] to [batch, channels, side, side]"""
    batch, _, channels = x.shape
    return x.transpose(1, 2).reshape(batch, channels, side, side)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.query, self.merge = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.key_value = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Conv2d(WIDTH, WIDTH, NARROWED, NARROWED)
        self.widen, self.last = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.depthwise = nn.Conv2d(4 * WIDTH, 4 * WIDTH, 3, padding=1, groups=4 * WIDTH)

    def heads(self, x: Tensor) -> Tensor:
        batch, places, _ = x.shape
        return x.view(batch, places, HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x: Tensor, side: int) -> Tensor:
        y = self.norms[0](x)
        small = self.narrow(image(y, side)).flatten(2).transpose(1, 2)
        k, v = self.key_value(self.norms[1](small)).chunk(2, dim=2)
        z = functional.scaled_dot_product_attention(
            self.heads(self.query(y)), self.heads(k), self.heads(v)
        )
        x = x + self.merge(z.transpose(1, 2).flatten(2))
        y = image(self.widen(self.norms[2](x)), side)
        y = functional.gelu(self.depthwise(y)).flatten(2).transpose(1, 2)
        x = x + self.last(y)
        return x


class SegFormer(nn.Module):
    """float32[batch, 3, 256, 256] to float32[batch, 19, 64, 64]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 7, 4, 3)
        self.norm = nn.LayerNorm(WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Conv2d(WIDTH, CLASSES, 1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images)
        side = x.shape[3]
        x = self.norm(x.flatten(2).transpose(1, 2))
        for block in self.blocks:
            x = block(x, side)
        result: Tensor = self.head(image(x, side))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return SegFormer().eval()
