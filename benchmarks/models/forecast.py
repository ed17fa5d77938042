"""PatchTST: a forecast of several series, each cut into overlapping pieces."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

STEPS = 512
PIECE = 16
STRIDE = 8
PIECES = (STEPS - PIECE) // STRIDE + 1
WIDTH = 128
HEADS = 8
DEPTH = 3
AHEAD = 96


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, pieces, _ = x.shape
        parts = self.query_key_value(x).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(y.transpose(1, 2).reshape(batch, pieces, WIDTH))
        x = self.norms[0](x.transpose(1, 2)).transpose(1, 2)
        x = x + self.feed(x)
        result: Tensor = self.norms[1](x.transpose(1, 2)).transpose(1, 2)
        return result


class Forecast(nn.Module):
    """float32[batch, 512, 7] to float32[batch, 96, 7]: the series' next 96 steps"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(PIECE, WIDTH)
        self.places = nn.Parameter(torch.randn(PIECES, WIDTH) / 50)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.head = nn.Linear(PIECES * WIDTH, AHEAD)

    def forward(self, series: Tensor) -> Tensor:
        mean = series.mean(1, keepdim=True)
        scale = (series.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
        x = ((series - mean) / scale).transpose(1, 2)
        pieces = self.embed(x.unfold(2, PIECE, STRIDE)) + self.places
        y = self.head(self.blocks(pieces.flatten(0, 1)).flatten(1))
        result: Tensor = y.view(x.shape[0], -1, AHEAD).transpose(1, 2) * scale + mean
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Forecast().eval()
