"""The encoder of a speech recogniser with the sizes of Whisper-tiny."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDS = 80
WIDTH = 384
HEADS = 6
LAYERS = 4
POSITIONS = 1500  # of 30 seconds; each is two frames of the spectrogram


def sinusoids() -> Tensor:
    """float32[POSITIONS, WIDTH]: sines, then cosines, of falling frequencies."""
    frequencies = torch.logspace(0, -4, WIDTH // 2)
    angles = torch.arange(POSITIONS)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], 1)


class Layer(nn.Module):
    """Attention and feed-forward network, each behind a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (
            layer(y).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        x = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return x


class AudioEncoder(nn.Module):
    """A spectrogram, float32[batch, 80, 3000], to float32[batch, 1500, 384]."""

    positions: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, WIDTH, 3, padding=1)
        self.second = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.register_buffer("positions", sinusoids())
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = functional.gelu(self.first(spectrogram))
        x = functional.gelu(self.second(x)).transpose(1, 2) + self.positions
        states: Tensor = self.norm(self.layers(x))
        return states


def build() -> nn.Module:
    torch.manual_seed(0)
    return AudioEncoder().eval()
