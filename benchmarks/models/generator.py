"""The generator of a GAN: transposed convolutions from noise to a picture."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

NOISE = 100
WIDTHS = (256, 128, 64, 32)


class Generator(nn.Module):
    """float32[batch, 100] to float32[batch, 3, 64, 64]"""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.ConvTranspose2d(NOISE, WIDTHS[0], 4, bias=False),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.ReLU(),
        ]
        for wide, narrow in itertools.pairwise(WIDTHS):
            layers += [
                nn.ConvTranspose2d(wide, narrow, 4, 2, 1, bias=False),
                nn.BatchNorm2d(narrow),
                nn.ReLU(),
            ]
        layers += [nn.ConvTranspose2d(WIDTHS[-1], 3, 4, 2, 1), nn.Tanh()]
        self.layers = nn.Sequential(*layers)

    def forward(self, noise: Tensor) -> Tensor:
        result: Tensor = self.layers(noise[:, :, None, None])
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Generator().eval()
