"""Blocks of a MobileViT: attention between the pixels at the same place of each patch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models.detector import convolution

HEADS = 4
PATCH = 2
CLASSES = 100


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, pixels, width = x.shape
        parts = self.query_key_value(self.norm(x)).view(batch, pixels, 3, HEADS, width // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(y.transpose(1, 2).reshape(batch, pixels, width))
        result: Tensor = x + self.feed(x)
        return result


class Block(nn.Module):
    def __init__(self, channels: int, width: int, depth: int) -> None:
        super().__init__()
        self.local = convolution(channels, channels, 3, 1)
        self.widen = nn.Conv2d(channels, width, 1, bias=False)
        self.layers = nn.Sequential(*(Layer(width) for _ in range(depth)), nn.LayerNorm(width))
        self.narrow = convolution(width, channels, 1, 1)
        self.join = convolution(2 * channels, channels, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.widen(self.local(x))
        batch, width, rows, columns = y.shape
        y = y.view(batch, width, rows // PATCH, PATCH, columns // PATCH, PATCH)
        y = y.permute(0, 3, 5, 2, 4, 1).reshape(batch * PATCH**2, -1, width)
        y = self.layers(y).view(batch, PATCH, PATCH, rows // PATCH, columns // PATCH, width)
        y = y.permute(0, 5, 3, 1, 4, 2).reshape(batch, width, rows, columns)
        result: Tensor = self.join(torch.cat((x, self.narrow(y)), 1))
        return result


class MobileViT(nn.Module):
    """float32[batch, 3, 256, 256] to float32[batch, 100]"""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            convolution(3, 16, 3, 2),
            convolution(16, 32, 3, 2),
            convolution(32, 64, 3, 2),
            Block(64, 96, 2),
            convolution(64, 96, 3, 2),
            Block(96, 120, 4),
        )
        self.head = nn.Linear(96, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.head(self.layers(images).mean((2, 3)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return MobileViT().eval()
