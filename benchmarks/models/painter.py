"""A network that paints a picture in another style: reflected edges, norms of each picture."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 32
BLOCKS = 3


class Convolution(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.edge = nn.ReflectionPad2d(kernel // 2)
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride)
        self.norm = nn.InstanceNorm2d(outputs, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.norm(self.convolution(self.edge(x)))
        return result


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Convolution(channels, channels, 3)
        self.second = Convolution(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.second(self.first(x).relu())
        return result


class Painter(nn.Module):
    """float32[batch, 3, 128, 128] to the same"""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(
            Convolution(3, WIDTH, 9),
            nn.ReLU(),
            Convolution(WIDTH, 2 * WIDTH, 3, 2),
            nn.ReLU(),
            Convolution(2 * WIDTH, 4 * WIDTH, 3, 2),
            nn.ReLU(),
        )
        self.blocks = nn.Sequential(*(Block(4 * WIDTH) for _ in range(BLOCKS)))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2),
            Convolution(4 * WIDTH, 2 * WIDTH, 3),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            Convolution(2 * WIDTH, WIDTH, 3),
            nn.ReLU(),
            nn.ReflectionPad2d(4),
            nn.Conv2d(WIDTH, 3, 9),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        result: Tensor = self.up(self.blocks(self.down(pictures)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Painter().eval()
