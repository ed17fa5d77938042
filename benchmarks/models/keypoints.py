"""Points to find again in another picture, as SuperPoint: scores of pixels, and descriptions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (64, 64, 128, 128)
CELL = 8
DESCRIPTION = 256
RADIUS = 4


def layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU())


def largest(scores: Tensor) -> Tensor:
    return functional.max_pool2d(scores, 2 * RADIUS + 1, 1, RADIUS)


class Keypoints(nn.Module):
    """float32[batch, 1, 120, 160] to scores of pixels and descriptions of cells"""

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        inputs = 1
        for i, width in enumerate(WIDTHS):
            parts += [layer(inputs, width), layer(width, width)]
            parts += [nn.MaxPool2d(2)] if i + 1 < len(WIDTHS) else []
            inputs = width
        self.layers = nn.Sequential(*parts)
        self.scores = nn.Sequential(layer(inputs, 256), nn.Conv2d(256, CELL * CELL + 1, 1))
        self.descriptions = nn.Sequential(layer(inputs, 256), nn.Conv2d(256, DESCRIPTION, 1))

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layers(pictures)
        scores = functional.pixel_shuffle(self.scores(x).softmax(1)[:, :-1], CELL)
        peaks = torch.where(scores == largest(scores), scores, torch.zeros_like(scores))
        return peaks.squeeze(1), functional.normalize(self.descriptions(x), dim=1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Keypoints().eval()
