"""A Perceiver: a few vectors attend to every pixel of a picture, and then to each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

PIXELS = 48
VECTORS = 96
WIDTH = 256
INPUTS = 3 + 61
HEADS = 8
DEPTH = 3
CLASSES = 100


class Attention(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm, self.norm_of_inputs = nn.LayerNorm(WIDTH), nn.LayerNorm(inputs)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key_value = nn.Linear(inputs, 2 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, inputs: Tensor) -> Tensor:
        q = self.query(self.norm(x)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.key_value(self.norm_of_inputs(inputs)).chunk(2, -1)
        )
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(y.transpose(1, 2).flatten(2))
        result: Tensor = x + self.feed(x)
        return result


class Perceiver(nn.Module):
    """float32[batch, 3, 48, 48] to float32[batch, 100]"""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(VECTORS, WIDTH) / 50)
        self.places = nn.Parameter(torch.randn(PIXELS**2, INPUTS - 3) / 50)
        self.look = nn.ModuleList(Attention(INPUTS) for _ in range(DEPTH))
        self.think = nn.ModuleList(Attention(WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        batch = pictures.shape[0]
        pixels = pictures.flatten(2).transpose(1, 2)
        pixels = torch.cat((pixels, self.places.expand(batch, -1, -1)), -1)
        x = self.vectors.expand(batch, -1, -1)
        for look, think in zip(self.look, self.think):
            x = look(x, pixels)
            x = think(x, x)
        result: Tensor = self.head(x.mean(1))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Perceiver().eval()
