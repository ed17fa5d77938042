"""Sound from its spectrum, as HiFi-GAN: transposed convolutions, and dilated ones at each rate."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDS = 80
CHANNELS = 256
RATES = (8, 8, 2, 2)
SIZES = (3, 7)
DILATIONS = (1, 3)
SLOPE = 0.1


class Block(nn.Module):
    """Two convolutions behind leaky ReLU for each dilation, and residuals."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.dilated = nn.ModuleList(
            nn.Conv1d(channels, channels, size, dilation=dilation, padding="same")
            for dilation in DILATIONS
        )
        self.dense = nn.ModuleList(
            nn.Conv1d(channels, channels, size, padding="same") for _ in DILATIONS
        )

    def forward(self, x: Tensor) -> Tensor:
        for dilated, dense in zip(self.dilated, self.dense, strict=True):
            y = dilated(functional.leaky_relu(x, SLOPE))
            x = x + dense(functional.leaky_relu(y, SLOPE))
        return x


class Vocoder(nn.Module):
    """float32[batch, 80, 40] to float32[batch, 1, 10240]"""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv1d(BANDS, CHANNELS, 7, padding=3)
        widths = [CHANNELS >> i for i in range(len(RATES) + 1)]
        self.enlarge = nn.ModuleList(
            nn.ConvTranspose1d(widths[i], widths[i + 1], 2 * rate, rate, rate // 2)
            for i, rate in enumerate(RATES)
        )
        self.blocks = nn.ModuleList(Block(width, size) for width in widths[1:] for size in SIZES)
        self.end = nn.Conv1d(widths[-1], 1, 7, padding=3)

    def forward(self, bands: Tensor) -> Tensor:
        x = self.start(bands)
        for i, enlarge in enumerate(self.enlarge):
            x = enlarge(functional.leaky_relu(x, SLOPE))
            first, second = self.blocks[2 * i : 2 * i + 2]
            x = (first(x) + second(x)) / len(SIZES)
        return torch.tanh(self.end(functional.leaky_relu(x)))


def build() -> nn.Module:
    torch.manual_seed(0)
    return Vocoder().eval()
