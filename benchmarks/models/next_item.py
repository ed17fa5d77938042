"""SASRec: the ten items that a user most likely chooses next, among 20,000."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

ITEMS = 20000
STEPS = 50
WIDTH = 64
HEADS = 2
DEPTH = 2
BEST = 10


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key_value = nn.Linear(WIDTH, 2 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        q = self.query(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.key_value(x).chunk(2, -1)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = y + self.merge(seen.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        result: Tensor = y + self.feed(y)
        return result


class NextItem(nn.Module):
    """int64[batch, 50] to the best items' scores, float32[batch, 10], and the items, int64"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(ITEMS, WIDTH)
        self.places = nn.Parameter(torch.randn(STEPS, WIDTH) / 50)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, items: Tensor) -> tuple[Tensor, Tensor]:
        x = self.blocks(self.embed(items) * WIDTH**0.5 + self.places)
        scores = functional.linear(self.norm(x[:, -1]), self.embed.weight)
        best, which = scores.softmax(-1).topk(BEST)
        return best, which


def build() -> nn.Module:
    torch.manual_seed(0)
    return NextItem().eval()
