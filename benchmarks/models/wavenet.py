"""A network of dilated convolutions over sound, with gates."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 64
DEPTH = 10
BANDS = 80


class Block(nn.Module):
    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.past = 2 * dilation
        self.gated = nn.Conv1d(WIDTH, 2 * WIDTH, 3, dilation=dilation)
        self.residual = nn.Conv1d(WIDTH, WIDTH, 1)
        self.skip = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        values, gates = self.gated(functional.pad(x, (self.past, 0))).chunk(2, dim=1)
        y = torch.tanh(values) * torch.sigmoid(gates)
        return x + self.residual(y), self.skip(y)


class WaveNet(nn.Module):
    """float32[batch, 80, steps] to float32[batch, 256, steps]"""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(BANDS, WIDTH, 1)
        self.blocks = nn.ModuleList(Block(2 ** (i % 5)) for i in range(DEPTH))
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(WIDTH, 128, 1), nn.ReLU(), nn.Conv1d(128, 256, 1)
        )

    def forward(self, bands: Tensor) -> Tensor:
        x = self.stem(bands)
        total = torch.zeros_like(x)
        for block in self.blocks:
            x, skipped = block(x)
            total = total + skipped
        result: Tensor = self.head(total)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return WaveNet().eval()
