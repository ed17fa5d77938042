"""A detector without anchors, for pictures of any size."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (32, 64, 128, 256)
NECK = 64
CLASSES = 20
BOX = 4


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution that keeps the size (but for the stride), its normalisation, activation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(),
    )


class Bottleneck(nn.Module):
    """A narrow and a wide convolution with a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            convolution(channels, channels // 2, 1), convolution(channels // 2, channels, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layers(x)
        return y


class Detector(nn.Module):
    """float32[1, 3, height, width] to the places' boxes and probabilities: float32[1, places, 24].

    A place is a pixel of one of three maps, with an eighth, a 16th and a 32nd of the sizes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = convolution(3, WIDTHS[0], 3, stride=4)
        self.stages = nn.ModuleList(
            nn.Sequential(convolution(narrow, wide, 3, stride=2), Bottleneck(wide))
            for narrow, wide in itertools.pairwise(WIDTHS)
        )
        self.lateral = nn.ModuleList(convolution(width, NECK, 1) for width in WIDTHS[1:])
        self.smooth = nn.ModuleList(convolution(NECK, NECK, 3) for _ in WIDTHS[1:])
        self.head = nn.Conv2d(NECK, BOX + CLASSES, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        maps = []
        for stage, lateral in zip(self.stages, self.lateral, strict=True):
            x = stage(x)
            maps.append(lateral(x))
        for i in reversed(range(len(maps) - 1)):
            maps[i] = maps[i] + functional.interpolate(maps[i + 1], maps[i].shape[-2:])
        found = [
            self.head(smooth(features)).flatten(2)
            for smooth, features in zip(self.smooth, maps, strict=True)
        ]
        places = torch.cat(found, 2).transpose(1, 2)
        boxes, classes = places[..., :BOX], places[..., BOX:]
        return torch.cat([functional.softplus(boxes), classes.sigmoid()], 2)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Detector().eval()
