"""A detector of the YOLO kind for pictures of 256 x 256: split channels, SiLU, pools in a row."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (16, 32, 64, 128, 256)
CLASSES = 80
BINS = 16


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.SiLU())


class Split(nn.Module):
    """Half of the channels goes through blocks, and all that they return is joined."""

    def __init__(self, inputs: int, outputs: int, count: int, residual: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.residual = residual
        self.first = convolution(inputs, outputs, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(convolution(half, half, 3), convolution(half, half, 3))
            for _ in range(count)
        )
        self.last = convolution((2 + count) * half, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.residual else y)
        result: Tensor = self.last(torch.cat(parts, 1))
        return result


class Pools(nn.Module):
    """Three pools of 5 x 5 in a row, joined."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = convolution(channels, channels // 2, 1)
        self.last = convolution(2 * channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        result: Tensor = self.last(torch.cat(parts, 1))
        return result


class Yolo(nn.Module):
    """float32[batch, 3, 256, 256] to float32[batch, 1344, 84]: boxes and classes"""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d, e = WIDTHS
        self.start = nn.Sequential(
            convolution(3, a, 3, 2), convolution(a, b, 3, 2), Split(b, b, 1, True)
        )
        self.third = nn.Sequential(convolution(b, c, 3, 2), Split(c, c, 2, True))
        self.fourth = nn.Sequential(convolution(c, d, 3, 2), Split(d, d, 2, True))
        self.fifth = nn.Sequential(convolution(d, e, 3, 2), Split(e, e, 1, True), Pools(e))
        self.up = nn.ModuleList([Split(e + d, d, 1, False), Split(d + c, c, 1, False)])
        self.down = nn.ModuleList([convolution(c, c, 3, 2), convolution(d, d, 3, 2)])
        self.joined = nn.ModuleList([Split(c + d, d, 1, False), Split(d + e, e, 1, False)])
        self.heads = nn.ModuleList(
            nn.Sequential(convolution(width, c, 3), nn.Conv2d(c, 4 * BINS + CLASSES, 1))
            for width in (c, d, e)
        )

    def forward(self, pictures: Tensor) -> Tensor:
        third = self.third(self.start(pictures))
        fourth = self.fourth(third)
        fifth = self.fifth(fourth)
        fourth = self.up[0](torch.cat([functional.interpolate(fifth, scale_factor=2), fourth], 1))
        third = self.up[1](torch.cat([functional.interpolate(fourth, scale_factor=2), third], 1))
        fourth = self.joined[0](torch.cat([self.down[0](third), fourth], 1))
        fifth = self.joined[1](torch.cat([self.down[1](fourth), fifth], 1))
        found = [
            head(x).flatten(2) for head, x in zip(self.heads, (third, fourth, fifth), strict=True)
        ]
        all_found = torch.cat(found, 2).transpose(1, 2)
        edges = all_found[..., : 4 * BINS].reshape(*all_found.shape[:2], 4, BINS).softmax(-1)
        sides = edges @ torch.arange(BINS, dtype=edges.dtype)
        return torch.cat([sides, all_found[..., 4 * BINS :].sigmoid()], -1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Yolo().eval()
