"""ShuffleNet V2: half of the channels through each block, then all of them in another order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models.mobilenet import convolution

WIDTHS = (24, 116, 232, 464)
BLOCKS = (4, 8, 4)
LAST = 1024
CLASSES = 1000


def pointwise(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(convolution(inputs, outputs, 1), nn.ReLU())


def depthwise(channels: int, stride: int) -> nn.Sequential:
    return convolution(channels, channels, 3, stride, groups=channels)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        half = outputs // 2
        self.narrows = inputs != outputs
        stride = 2 if self.narrows else 1
        start = inputs if self.narrows else half
        self.right = nn.Sequential(
            pointwise(start, half), depthwise(half, stride), pointwise(half, half)
        )
        if self.narrows:
            self.left = nn.Sequential(depthwise(inputs, stride), pointwise(inputs, half))

    def forward(self, x: Tensor) -> Tensor:
        if self.narrows:
            y = torch.cat([self.left(x), self.right(x)], dim=1)
        else:
            left, right = x.chunk(2, dim=1)
            y = torch.cat([left, self.right(right)], dim=1)
        batch, channels, height, width = y.shape
        y = y.view(batch, 2, channels // 2, height, width).transpose(1, 2)
        return y.reshape(batch, channels, height, width)


class ShuffleNet(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        stem = convolution(3, WIDTHS[0], 3, 2)
        self.stem = nn.Sequential(stem, nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        for inputs, outputs, count in zip(WIDTHS, WIDTHS[1:], BLOCKS):
            blocks += [Block(inputs, outputs), *(Block(outputs, outputs) for _ in range(count - 1))]
        self.blocks = nn.Sequential(*blocks, pointwise(WIDTHS[-1], LAST))
        self.head = nn.Linear(LAST, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.head(self.blocks(self.stem(images)).mean((2, 3)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return ShuffleNet().eval()
