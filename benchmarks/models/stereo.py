"""Distances from two pictures, as PSMNet: both compared at each shift, and a network of volumes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

SHIFTS = 16
FEATURES = 16
VOLUME = 16


def layer3(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv3d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm3d(outputs), nn.ReLU()
    )


def layer2(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Stereo(nn.Module):
    """float32[batch, 3, 128, 160], twice, to float32[batch, 128, 160]"""

    shifts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            layer2(3, 32, 2), layer2(32, 32, 2), layer2(32, 32, 1), nn.Conv2d(32, FEATURES, 1)
        )
        self.start = nn.Sequential(layer3(2 * FEATURES, VOLUME), layer3(VOLUME, VOLUME))
        self.further = nn.Sequential(layer3(VOLUME, VOLUME), layer3(VOLUME, VOLUME))
        self.end = nn.Conv3d(VOLUME, 1, 3, padding=1)
        self.register_buffer("shifts", torch.arange(SHIFTS, dtype=torch.float32)[:, None, None])

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        left, right = self.features(left), self.features(right)
        planes = []
        for shift in range(SHIFTS):
            moved = functional.pad(right, (shift, 0))[..., : right.shape[-1]]
            planes.append(torch.cat([left, moved], 1))
        x = self.start(torch.stack(planes, 2))
        x = x + self.further(x)
        weights = self.end(x).squeeze(1).softmax(1)
        far = (weights * self.shifts).sum(1, keepdim=True)
        large = functional.interpolate(far, scale_factor=4, mode="bilinear", align_corners=False)
        return large.squeeze(1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Stereo().eval()
