"""GhostNet for pictures of 224 x 224: half of the channels are cheap filters of the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models.mobilenet import convolution

# Channels inside a block, its outputs and stride.
BLOCKS = (
    *((16, 16, 1), (48, 24, 2), (72, 24, 1), (72, 40, 2), (120, 40, 1)),
    *((240, 80, 2), (200, 80, 1), (184, 80, 1), (480, 112, 1), (672, 160, 2), (960, 160, 1)),
)
CLASSES = 1000


class Ghost(nn.Module):
    """Half of the channels are sums of channels, the others depthwise filters of these."""

    def __init__(self, inputs: int, outputs: int, relu: bool) -> None:
        super().__init__()
        self.relu = relu
        self.first = convolution(inputs, outputs // 2, 1)
        self.cheap = convolution(outputs // 2, outputs // 2, 3, 1, outputs // 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = functional.relu(x) if self.relu else x
        y = self.cheap(x)
        return torch.cat([x, functional.relu(y) if self.relu else y], 1)


class Block(nn.Module):
    """Two of them, a depthwise filter between them where the picture shrinks, and a residual."""

    def __init__(self, inputs: int, inside: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = Ghost(inputs, inside, True)
        self.filter = (
            convolution(inside, inside, 3, stride, inside) if stride > 1 else nn.Identity()
        )
        self.second = Ghost(inside, outputs, False)
        shortcut: list[nn.Module] = []
        if stride > 1 or inputs != outputs:
            shortcut = [convolution(inputs, inputs, 3, stride, inputs)]
            shortcut.append(convolution(inputs, outputs, 1))
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(self.filter(self.first(x))) + self.shortcut(x)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    channels = 16
    parts: list[nn.Module] = [convolution(3, channels, 3, 2), nn.ReLU()]
    for inside, outputs, stride in BLOCKS:
        parts.append(Block(channels, inside, outputs, stride))
        channels = outputs
    parts += [convolution(channels, 960, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(960, CLASSES)).eval()
