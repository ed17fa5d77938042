"""A one-stage detector with split stages and a pyramid of features."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models.detector import convolution

WIDTHS = (16, 32, 64, 128, 256)
BLOCKS = (1, 2, 2, 1)
CHANNELS = 85


class Split(nn.Module):
    """Half of the channels through blocks, whose results are all concatenated."""

    def __init__(self, inputs: int, outputs: int, blocks: int, residual: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.residual = residual
        self.first = convolution(inputs, outputs, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(convolution(half, half, 3), convolution(half, half, 3))
            for _ in range(blocks)
        )
        self.last = convolution((2 + blocks) * half, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, dim=1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.residual else y)
        result: Tensor = self.last(torch.cat(parts, dim=1))
        return result


class Pooled(nn.Module):
    """The maximum of larger and larger surroundings, beside each other."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = convolution(channels, channels // 2, 1)
        self.last = convolution(2 * channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        result: Tensor = self.last(torch.cat(parts, dim=1))
        return result


class Detector(nn.Module):
    """float32[batch, 3, 320, 320] to float32[batch, 2100, 85]: boxes and classes of each place."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = convolution(3, WIDTHS[0], 3, 2)
        self.downs = nn.ModuleList(
            convolution(narrow, wide, 3, 2) for narrow, wide in itertools.pairwise(WIDTHS)
        )
        self.stages = nn.ModuleList(
            Split(width, width, blocks, True) for width, blocks in zip(WIDTHS[1:], BLOCKS)
        )
        self.pooled = Pooled(WIDTHS[-1])
        self.up = nn.ModuleList([Split(256 + 128, 128, 1, False), Split(128 + 64, 64, 1, False)])
        self.down = nn.ModuleList([convolution(64, 64, 3, 2), convolution(128, 128, 3, 2)])
        self.merge = nn.ModuleList(
            [Split(64 + 128, 128, 1, False), Split(128 + 256, 256, 1, False)]
        )
        self.heads = nn.ModuleList(
            nn.Sequential(convolution(width, 64, 3), nn.Conv2d(64, CHANNELS, 1))
            for width in WIDTHS[2:]
        )

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.stem(pictures)
        maps = []
        for down, stage in zip(self.downs, self.stages):
            x = stage(down(x))
            maps.append(x)
        top = self.pooled(maps[3])
        middle = self.up[0](torch.cat([self._double(top), maps[2]], dim=1))
        low = self.up[1](torch.cat([self._double(middle), maps[1]], dim=1))
        middle = self.merge[0](torch.cat([self.down[0](low), middle], dim=1))
        top = self.merge[1](torch.cat([self.down[1](middle), top], dim=1))
        found = [
            head(x).flatten(2).transpose(1, 2) for head, x in zip(self.heads, (low, middle, top))
        ]
        return torch.cat(found, dim=1).sigmoid()

    def _double(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2, mode="nearest")


def build() -> nn.Module:
    torch.manual_seed(0)
    return Detector().eval()
