"""RegNetY for pictures of 224 x 224: convolutions of groups of 16 channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models.mobilenet import convolution

GROUP = 16
# Channels and blocks of each stage.
STAGES = ((64, 1), (144, 3), (320, 8), (784, 2))
CLASSES = 1000


class Block(nn.Module):
    """A convolution of groups between two of single pixels, scaled channels, and a residual."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(inputs, outputs, 1)
        self.second = convolution(outputs, outputs, 3, stride, outputs // GROUP)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(outputs, inputs // 4, 1),
            nn.ReLU(),
            nn.Conv2d(inputs // 4, outputs, 1),
            nn.Sigmoid(),
        )
        self.third = convolution(outputs, outputs, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = convolution(inputs, outputs, 1, stride) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.second(functional.relu(self.first(x))))
        return functional.relu(self.third(y * self.gate(y)) + self.shortcut(x))


def build() -> nn.Module:
    torch.manual_seed(0)
    channels = 32
    parts: list[nn.Module] = [convolution(3, channels, 3, 2), nn.ReLU()]
    for outputs, count in STAGES:
        for i in range(count):
            parts.append(Block(channels, outputs, 2 if i == 0 else 1))
            channels = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
    return nn.Sequential(*parts, *head).eval()
