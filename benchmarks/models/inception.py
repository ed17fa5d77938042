"""Blocks of Inception: four ways beside each other, with filters of 1x7, 7x1 and 5x5."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 1000


class Convolution(nn.Module):
    """A convolution, its normalisation and its activation."""

    def __init__(
        self, inputs: int, outputs: int, kernel: tuple[int, int] = (1, 1), stride: int = 1
    ) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2)
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.norm(self.convolution(x)).relu()
        return result


class Block(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.ways = nn.ModuleList(
            [
                Convolution(inputs, width),
                nn.Sequential(
                    Convolution(inputs, width // 2), Convolution(width // 2, width, (5, 5))
                ),
                nn.Sequential(
                    Convolution(inputs, width // 2),
                    Convolution(width // 2, width, (1, 7)),
                    Convolution(width, width, (7, 1)),
                ),
                nn.Sequential(nn.AvgPool2d(3, 1, 1), Convolution(inputs, width)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([way(x) for way in self.ways], dim=1)


class Inception(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            Convolution(3, 32, (3, 3), 2),
            Convolution(32, 64, (3, 3)),
            nn.MaxPool2d(3, 2, 1),
            Convolution(64, 128, (3, 3), 2),
            Block(128, 48),
            Block(192, 48),
            nn.MaxPool2d(3, 2, 1),
            Block(192, 96),
            Block(384, 96),
        )
        self.head = nn.Linear(384, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.head(self.features(images).mean((2, 3)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Inception().eval()
