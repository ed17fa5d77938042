"""A Siamese tracker: looks for the features of an object everywhere in a scene."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models.detector import convolution

WIDTH = 128


def correlate(scene: Tensor, target: Tensor) -> Tensor:
    """Each channel of a scene with the same channel of its object, at each place where it fits."""
    rows, columns = target.shape[2:]
    places = scene.unfold(2, rows, 1).unfold(3, columns, 1)
    return (places * target[:, :, None, None]).sum((-2, -1))


class Tracker(nn.Module):
    """float32[batch, 3, 64, 64] and float32[batch, 3, 128, 128] to scores and boxes of 9 x 9"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            convolution(3, 32, 3, 2), convolution(32, 64, 3, 2), convolution(64, WIDTH, 3, 2)
        )
        self.join = convolution(WIDTH, WIDTH, 3)
        self.scores = nn.Conv2d(WIDTH, 2, 1)
        self.boxes = nn.Conv2d(WIDTH, 4, 1)

    def forward(self, target: Tensor, scene: Tensor) -> tuple[Tensor, Tensor]:
        x = self.join(correlate(self.features(scene), self.features(target)))
        return self.scores(x), self.boxes(x)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Tracker().eval()
