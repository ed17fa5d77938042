"""PointNet: layers for each of many points, and the maximum over all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 40


def layer(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()]


class PointNet(nn.Module):
    """float32[batch, 3, points] to float32[batch, 40]"""

    def __init__(self) -> None:
        super().__init__()
        self.points = nn.Sequential(*layer(3, 64), *layer(64, 128), *layer(128, 1024))
        self.head = nn.Sequential(
            nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, CLASSES)
        )

    def forward(self, points: Tensor) -> Tensor:
        result: Tensor = self.head(self.points(points).amax(2))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return PointNet().eval()
