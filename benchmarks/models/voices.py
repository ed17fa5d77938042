"""Two voices of one sound, as Conv-TasNet: depthwise convolutions over time, norms of all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FILTERS = 256
LENGTH = 16
CHANNELS = 128
HIDDEN = 256
BLOCKS = 6
VOICES = 2


class Block(nn.Module):
    """A depthwise convolution between two pointwise ones, and a residual."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(CHANNELS, HIDDEN, 1),
            nn.PReLU(),
            nn.GroupNorm(1, HIDDEN),
            nn.Conv1d(HIDDEN, HIDDEN, 3, dilation=dilation, padding=dilation, groups=HIDDEN),
            nn.PReLU(),
            nn.GroupNorm(1, HIDDEN),
            nn.Conv1d(HIDDEN, CHANNELS, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layers(x)
        return y


class Voices(nn.Module):
    """float32[batch, 1, 16000] to float32[batch, 2, 16000]"""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, FILTERS, LENGTH, LENGTH // 2, bias=False)
        self.start = nn.Sequential(nn.GroupNorm(1, FILTERS), nn.Conv1d(FILTERS, CHANNELS, 1))
        self.blocks = nn.Sequential(*(Block(2 ** (i % BLOCKS)) for i in range(2 * BLOCKS)))
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(CHANNELS, VOICES * FILTERS, 1), nn.ReLU())
        self.decode = nn.ConvTranspose1d(FILTERS, 1, LENGTH, LENGTH // 2, bias=False)

    def forward(self, sound: Tensor) -> Tensor:
        x = torch.relu(self.encode(sound))
        masks = self.masks(self.blocks(self.start(x))).view(-1, VOICES, FILTERS, x.shape[2])
        y = (masks * x[:, None]).flatten(0, 1)
        result: Tensor = self.decode(y).view(-1, VOICES, sound.shape[2])
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Voices().eval()
