"""An FT-Transformer: attention between the columns of each row of a table."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

NUMBERS = 16
CATEGORIES = 8
VALUES = 1000
WIDTH = 64
HEADS = 8
DEPTH = 3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, columns, _ = x.shape
        parts = self.query_key_value(self.norms[0](x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(y.transpose(1, 2).reshape(batch, columns, WIDTH))
        values, gates = self.widen(self.norms[1](x)).chunk(2, -1)
        result: Tensor = x + self.narrow(values * functional.relu(gates))
        return result


class Columns(nn.Module):
    """float32[batch, 16] and int64[batch, 8] to float32[batch, 1]"""

    offsets: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(NUMBERS, WIDTH))
        self.bias = nn.Parameter(torch.randn(NUMBERS, WIDTH))
        self.embed = nn.Embedding(CATEGORIES * VALUES, WIDTH)
        self.first = nn.Parameter(torch.randn(WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
        self.register_buffer("offsets", torch.arange(CATEGORIES) * VALUES)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        columns = (
            self.first.expand(numbers.shape[0], 1, WIDTH),
            numbers[..., None] * self.weight + self.bias,
            self.embed(categories + self.offsets),
        )
        result: Tensor = self.head(self.blocks(torch.cat(columns, 1))[:, 0])
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Columns().eval()
