"""A codec of sound, as EnCodec: strided convolutions, an LSTM, and transposed convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHANNELS = 32
STRIDES = (2, 4, 5)
LATENTS = 64


class Block(nn.Module):
    """Two convolutions behind ELU, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ELU(),
            nn.Conv1d(channels, channels // 2, 3, padding=1),
            nn.ELU(),
            nn.Conv1d(channels // 2, channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layers(x)
        return y


class Steps(nn.Module):
    """An LSTM over time, and a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(channels, channels, 1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.lstm(x.transpose(1, 2))[0].transpose(1, 2)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    width = CHANNELS
    parts: list[nn.Module] = [nn.Conv1d(1, width, 7, padding=3)]
    for stride in STRIDES:
        parts += [Block(width), nn.ELU()]
        parts.append(nn.Conv1d(width, 2 * width, 2 * stride, stride, (stride + 1) // 2))
        width *= 2
    parts += [Steps(width), nn.ELU(), nn.Conv1d(width, LATENTS, 3, padding=1)]
    parts += [nn.Conv1d(LATENTS, width, 3, padding=1), Steps(width)]
    for stride in reversed(STRIDES):
        parts.append(nn.ELU())
        parts.append(nn.ConvTranspose1d(width, width // 2, 2 * stride, stride, stride // 2))
        width //= 2
        parts.append(Block(width))
    return nn.Sequential(*parts, nn.ELU(), nn.Conv1d(width, 1, 7, padding=3)).eval()
