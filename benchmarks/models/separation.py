"""Demucs: separates the sources of a sound, by convolutions to a short series and back."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 32
DEPTH = 4
SOURCES = 4


class Separation(nn.Module):
    """float32[batch, 2, 16384] to float32[batch, 4, 2, 16384]"""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        inputs = 2
        for i in range(DEPTH):
            width = WIDTH * 2**i
            self.down.append(
                nn.Sequential(
                    nn.Conv1d(inputs, width, 8, 4, 2),
                    nn.ReLU(),
                    nn.Conv1d(width, 2 * width, 1),
                    nn.GLU(1),
                )
            )
            self.up.insert(
                0,
                nn.Sequential(
                    nn.Conv1d(width, 2 * width, 3, 1, 1),
                    nn.GLU(1),
                    nn.ConvTranspose1d(width, 2 * SOURCES if i == 0 else inputs, 8, 4, 2),
                    nn.Identity() if i == 0 else nn.ReLU(),
                ),
            )
            inputs = width
        self.lstm = nn.LSTM(width, width // 2, 2, batch_first=True, bidirectional=True)

    def forward(self, sound: Tensor) -> Tensor:
        kept, x = [], sound
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        x = self.lstm(x.transpose(1, 2))[0].transpose(1, 2)
        for layer in self.up:
            x = layer(x + kept.pop())
        result: Tensor = x.unflatten(1, (SOURCES, 2))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Separation().eval()
