"""Actions in a film, as TimeSformer: attention over time, then over a frame's patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 192
HEADS = 3
FRAMES = 8
PATCH = 16
LAYERS = 3


class Attention(nn.Module):
    """Between the last positions but one: [.., positions, width]"""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inputs, self.outputs = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.inputs(self.norm(x)).view(*x.shape[:-1], 3, HEADS, WIDTH // HEADS)
        query, key, value = (part.transpose(-2, -3) for part in parts.unbind(-3))
        scores = query * (WIDTH // HEADS) ** -0.5 @ key.transpose(-1, -2)
        y = scores.softmax(-1) @ value
        result: Tensor = x + self.outputs(y.transpose(-2, -3).flatten(-2))
        return result


class Layer(nn.Module):
    """float32[batch, frames, patches, width] to the same"""

    def __init__(self) -> None:
        super().__init__()
        self.over_time, self.in_frame = Attention(), Attention()
        self.end = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.over_time(x.transpose(1, 2)).transpose(1, 2)
        x = self.in_frame(x)
        result: Tensor = x + self.end(x)
        return result


class Frames(nn.Module):
    """float32[batch, 8, 3, 112, 112] to float32[batch, 400]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.randn(1, 1, 49, WIDTH) * 0.02)
        self.times = nn.Parameter(torch.randn(1, FRAMES, 1, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 400))

    def forward(self, film: Tensor) -> Tensor:
        x = self.patches(film.flatten(0, 1)).flatten(2).transpose(1, 2)
        x = x.unflatten(0, (-1, FRAMES)) + self.places + self.times
        result: Tensor = self.head(self.layers(x).mean((1, 2)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Frames().eval()
