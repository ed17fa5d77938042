"""What a radar sees next: a ConvLSTM over eight pictures, and a convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHANNELS = 32


class Weather(nn.Module):
    """float32[batch, 8, 1, 64, 64] to float32[batch, 1, 64, 64]"""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(1 + CHANNELS, 4 * CHANNELS, 3, padding=1)
        self.head = nn.Conv2d(CHANNELS, 1, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        batch, _, _, height, width = pictures.shape
        hidden = pictures.new_zeros(batch, CHANNELS, height, width)
        cell = hidden
        for picture in pictures.unbind(1):
            gates = self.gates(torch.cat([picture, hidden], 1))
            take, keep, out, new = gates.chunk(4, 1)
            cell = keep.sigmoid() * cell + take.sigmoid() * new.tanh()
            hidden = out.sigmoid() * cell.tanh()
        result: Tensor = self.head(hidden)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Weather().eval()
