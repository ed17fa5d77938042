"""DenseNet-121 for pictures of 224 x 224."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

GROWTH = 32
LAYERS = (6, 12, 24, 16)
CLASSES = 1000


class Layer(nn.Module):
    """32 channels out of all that are there."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(inputs), nn.BatchNorm2d(4 * GROWTH)])
        self.narrow = nn.Conv2d(inputs, 4 * GROWTH, 1, bias=False)
        self.wide = nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False)

    def forward(self, images: list[Tensor]) -> Tensor:
        x = self.narrow(functional.relu(self.norms[0](torch.cat(images, 1))))
        new: Tensor = self.wide(functional.relu(self.norms[1](x)))
        return new


class Stage(nn.Module):
    """Layers each of which reads what all before it computed."""

    def __init__(self, inputs: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(inputs + GROWTH * i) for i in range(count))

    def forward(self, x: Tensor) -> Tensor:
        images = [x]
        for layer in self.layers:
            images.append(layer(images))
        return torch.cat(images, 1)


def build() -> nn.Module:
    torch.manual_seed(0)
    channels = 64
    parts: list[nn.Module] = [
        nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    for i, count in enumerate(LAYERS):
        parts.append(Stage(channels, count))
        channels += GROWTH * count
        parts += [nn.BatchNorm2d(channels), nn.ReLU()]
        if i + 1 < len(LAYERS):
            parts += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
    return nn.Sequential(*parts, *head).eval()
