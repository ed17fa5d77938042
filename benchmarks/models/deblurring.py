"""Clear pictures from blurred ones, as NAFNet: products of halves in the place of activations."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models.convnext import ChannelNorm

CHANNELS = 32


def halves(x: Tensor) -> Tensor:
    first, second = x.chunk(2, 1)
    return first * second


class Block(nn.Module):
    """A depthwise convolution with weights of channels, and two pointwise ones."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        double = 2 * channels
        self.norms = nn.ModuleList(ChannelNorm(channels, eps=1e-6) for _ in range(2))
        self.enter = nn.Conv2d(channels, double, 1)
        self.depthwise = nn.Conv2d(double, double, 3, padding=1, groups=double)
        self.weigh = nn.Conv2d(channels, channels, 1)
        self.leave = nn.Conv2d(channels, channels, 1)
        self.widen = nn.Conv2d(channels, double, 1)
        self.narrow = nn.Conv2d(channels, channels, 1)
        self.scales = nn.Parameter(torch.full((2, channels, 1, 1), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = halves(self.depthwise(self.enter(self.norms[0](x))))
        y = self.leave(y * self.weigh(y.mean((2, 3), keepdim=True)))
        x = x + y * self.scales[0]
        y = self.narrow(halves(self.widen(self.norms[1](x))))
        result: Tensor = x + y * self.scales[1]
        return result


class Deblurring(nn.Module):
    """float32[batch, 3, 96, 96] to the same"""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.first = Block(CHANNELS)
        self.shrink = nn.Conv2d(CHANNELS, 2 * CHANNELS, 2, 2)
        self.middle = nn.Sequential(*(Block(2 * CHANNELS) for _ in range(3)))
        self.enlarge = nn.Conv2d(2 * CHANNELS, 4 * CHANNELS, 1, bias=False)
        self.last = Block(CHANNELS)
        self.end = nn.Conv2d(CHANNELS, 3, 3, padding=1)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.first(self.start(pictures))
        y = functional.pixel_shuffle(self.enlarge(self.middle(self.shrink(x))), 2)
        result: Tensor = pictures + self.end(self.last(x + y))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Deblurring().eval()
