"""VGG-16: large convolutions of 3x3, and large layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Channels of the convolutions between two poolings.
STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
LAYERS = 4096
CLASSES = 1000


class Vgg(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for stage in STAGES:
            for channels in stage:
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
                before = channels
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.Linear(49 * before, LAYERS),
            nn.ReLU(),
            nn.Linear(LAYERS, LAYERS),
            nn.ReLU(),
            nn.Linear(LAYERS, CLASSES),
        )

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.head(self.features(images).flatten(1))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Vgg().eval()
