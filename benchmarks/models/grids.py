"""A stage of MaxViT: an inverted residual, attention in windows, and on grids across the image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 64
HEAD = 32
SIDE = 28
WINDOW = 7


class Residual(nn.Module):
    """Widens, filters each channel, weighs channels, narrows."""

    def __init__(self) -> None:
        super().__init__()
        wide = 4 * WIDTH
        self.start = nn.Sequential(
            nn.BatchNorm2d(WIDTH),
            nn.Conv2d(WIDTH, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.GELU(),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.GELU(),
        )
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(wide, WIDTH // 4, 1),
            nn.SiLU(),
            nn.Conv2d(WIDTH // 4, wide, 1),
            nn.Sigmoid(),
        )
        self.end = nn.Conv2d(wide, WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.start(x)
        result: Tensor = x + self.end(y * self.weights(y))
        return result


class Attention(nn.Module):
    """Of 49 pixels, with scores for each distance: float32[.., 49, width] to the same"""

    index: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.inputs, self.outputs = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.distances = nn.Parameter(torch.randn((2 * WINDOW - 1) ** 2, WIDTH // HEAD) * 0.1)
        places = torch.cartesian_prod(torch.arange(WINDOW), torch.arange(WINDOW))
        apart = places[:, None] - places + WINDOW - 1
        self.register_buffer("index", apart[..., 0] * (2 * WINDOW - 1) + apart[..., 1])

    def forward(self, x: Tensor) -> Tensor:
        parts = self.inputs(self.norms[0](x)).unflatten(-1, (3, WIDTH // HEAD, HEAD))
        query, key, value = (part.transpose(-2, -3) for part in parts.unbind(-3))
        scores = query @ key.transpose(-1, -2) * HEAD**-0.5
        scores = scores + self.distances[self.index].permute(2, 0, 1)
        y = (scores.softmax(-1) @ value).transpose(-2, -3).flatten(-2)
        x = x + self.outputs(y)
        result: Tensor = x + self.layers(self.norms[1](x))
        return result


class Block(nn.Module):
    """float32[batch, 64, 28, 28] to the same"""

    def __init__(self) -> None:
        super().__init__()
        self.residual, self.windows, self.grid = Residual(), Attention(), Attention()

    def forward(self, x: Tensor) -> Tensor:
        x = self.residual(x).permute(0, 2, 3, 1)
        count = SIDE // WINDOW
        y = x.reshape(-1, count, WINDOW, count, WINDOW, WIDTH).transpose(2, 3)
        y = self.windows(y.flatten(3, 4)).unflatten(3, (WINDOW, WINDOW)).transpose(2, 3)
        y = y.reshape(-1, WINDOW, count, WINDOW, count, WIDTH).permute(0, 2, 4, 1, 3, 5)
        y = self.grid(y.flatten(3, 4)).unflatten(3, (WINDOW, WINDOW)).permute(0, 3, 1, 4, 2, 5)
        result: Tensor = y.reshape(-1, SIDE, SIDE, WIDTH).permute(0, 3, 1, 2)
        return result


def build() -> nn.Module:
    """float32[batch, 3, 112, 112] to float32[batch, 64, 28, 28]"""
    torch.manual_seed(0)
    stem = nn.Conv2d(3, WIDTH, 4, 4)
    return nn.Sequential(stem, *(Block() for _ in range(2))).eval()
