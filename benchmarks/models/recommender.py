"""A recommender: sums of embeddings, their products with each other, and layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

TABLES = 16
ROWS = 10000
WIDTH = 32
NUMBERS = 13
WORDS = 4


class Recommender(nn.Module):
    """float32[batch, 13] and int64[batch, 16, 4] to the probability of a click: float32[batch]."""

    rows: Tensor
    columns: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES))
        self.bottom = nn.Sequential(
            nn.Linear(NUMBERS, 128), nn.ReLU(), nn.Linear(128, WIDTH), nn.ReLU()
        )
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(
            nn.Linear(WIDTH + pairs, 256),
            nn.ReLU(),
            nn.Linear(256, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )
        rows, columns = torch.tril_indices(TABLES + 1, TABLES + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, numbers: Tensor, words: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        sums = [table(words[:, i]) for i, table in enumerate(self.tables)]
        features = torch.stack([dense, *sums], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        pairs = products[:, self.rows, self.columns]
        result: Tensor = self.top(torch.cat([dense, pairs], dim=1))[:, 0].sigmoid()
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Recommender().eval()
