"""Faces compared, as ArcFace: residual blocks with PReLU, norms before convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (32, 64, 96, 128)


class Block(nn.Module):
    """Two convolutions, with weights for channels, beside a convolution or nothing."""

    def __init__(self, inputs: int, outputs: int, step: int) -> None:
        super().__init__()
        self.beside = nn.Sequential()
        if step > 1 or inputs != outputs:
            self.beside = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, step, bias=False), nn.BatchNorm2d(outputs)
            )
        self.layers = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, step, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.beside(x) + self.layers(x)
        return result


class Faces(nn.Module):
    """float32[batch, 3, 112, 112] to float32[batch, 256], of length 1"""

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Module] = [
            nn.Conv2d(3, WIDTHS[0], 3, 1, 1, bias=False),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.PReLU(WIDTHS[0]),
        ]
        before = WIDTHS[0]
        for width in WIDTHS:
            parts += [Block(before, width, 2), Block(width, width, 1)]
            before = width
        self.features = nn.Sequential(*parts, nn.BatchNorm2d(before))
        self.head = nn.Linear(before * 49, 256)
        self.norm = nn.BatchNorm1d(256)

    def forward(self, faces: Tensor) -> Tensor:
        x = self.norm(self.head(self.features(faces).flatten(1)))
        return functional.normalize(x)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Faces().eval()
