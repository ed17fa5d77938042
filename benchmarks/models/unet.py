"""A U-Net that gives each pixel of a picture a class."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

WIDTHS = (32, 64, 128, 256)
CLASSES = 8


def convolutions(inputs: int, outputs: int) -> nn.Sequential:
    """Two 3x3 convolutions, each with its normalisation."""
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [
            nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """float32[batch, 3, height, width] to float32[batch, 8, height, width]; multiples of 8."""

    def __init__(self) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(WIDTHS))
        self.first = convolutions(3, WIDTHS[0])
        self.down = nn.ModuleList(convolutions(narrow, wide) for narrow, wide in pairs)
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(wide, narrow, 2, stride=2) for narrow, wide in reversed(pairs)
        )
        self.merge = nn.ModuleList(
            convolutions(2 * narrow, narrow) for narrow, _ in reversed(pairs)
        )
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(WIDTHS[0], CLASSES, 1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.first(images)
        skipped = []
        for down in self.down:
            skipped.append(x)
            x = down(self.pool(x))
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skipped.pop(), up(x)], 1))
        logits: Tensor = self.head(x)
        return logits


def build() -> nn.Module:
    torch.manual_seed(0)
    return UNet().eval()
