"""A Swin transformer of three stages for pictures of 224 x 224."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 96
HEAD = 32
WINDOW = 7
PATCH = 4
SIDE = 56
STAGES = 3
CLASSES = 1000


def windows(x: Tensor) -> Tensor:
    """[batch, side, side, channels] to [batch * windows, 49, channels]"""
    batch, side, _, channels = x.shape
    count = side // WINDOW
    x = x.view(batch, count, WINDOW, count, WINDOW, channels).transpose(2, 3)
    return x.reshape(-1, WINDOW * WINDOW, channels)


def image(x: Tensor, side: int) -> Tensor:
    """The inverse of windows()."""
    count, channels = side // WINDOW, x.shape[2]
    x = x.view(-1, count, count, WINDOW, WINDOW, channels).transpose(2, 3)
    return x.reshape(-1, side, side, channels)


def mask(side: int, shift: int) -> Tensor:
    """float32[windows, 49, 49]: -100 between pixels that a shift made neighbours."""
    parts = torch.zeros(side)
    parts[-WINDOW:-shift], parts[-shift:] = 1, 2
    area = windows((3 * parts[:, None] + parts)[None, :, :, None])[..., 0]
    return (area[:, None] != area[:, :, None]).float() * -100


class Block(nn.Module):
    """Attention within windows, which are shifted in every other block, and two layers."""

    mask: Tensor

    def __init__(self, width: int, side: int, shift: int) -> None:
        super().__init__()
        self.heads, self.side, self.shift = width // HEAD, side, shift
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.query_key_value = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.places = nn.Parameter(torch.randn(self.heads, WINDOW**2, WINDOW**2) * 0.1)
        if shift:
            self.register_buffer("mask", mask(side, shift))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = image(self.attention(windows(y)), self.side)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        result: Tensor = x + self.layers(self.norms[1](x))
        return result

    def attention(self, x: Tensor) -> Tensor:
        count, pixels, width = x.shape
        parts = self.query_key_value(x).view(count, pixels, 3, self.heads, HEAD)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query * HEAD**-0.5 @ key.transpose(2, 3) + self.places
        if self.shift:
            in_window = scores.view(-1, self.mask.shape[0], self.heads, pixels, pixels)
            scores = (in_window + self.mask[:, None]).view_as(scores)
        y = functional.softmax(scores, -1) @ value
        merged: Tensor = self.merge(y.transpose(1, 2).reshape(count, pixels, width))
        return merged


class Shrink(nn.Module):
    """A quarter of the pixels, with twice the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.layer = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = [x[:, row::2, column::2] for column in range(2) for row in range(2)]
        y: Tensor = self.layer(self.norm(torch.cat(parts, -1)))
        return y


class Swin(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.norm = nn.LayerNorm(WIDTH)
        parts: list[nn.Module] = []
        width, side = WIDTH, SIDE
        for stage in range(STAGES):
            if stage:
                parts.append(Shrink(width))
                width, side = 2 * width, side // 2
            parts += [Block(width, side, 0), Block(width, side, WINDOW // 2)]
        self.blocks = nn.Sequential(*parts, nn.LayerNorm(width))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.norm(self.patches(images).permute(0, 2, 3, 1))
        logits: Tensor = self.head(self.blocks(x).mean((1, 2)))
        return logits


def build() -> nn.Module:
    torch.manual_seed(0)
    return Swin().eval()
