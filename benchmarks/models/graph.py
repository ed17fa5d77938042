"""A graph network: three rounds of messages along edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

FEATURES = 32
WIDTH = 128
ROUNDS = 3
CLASSES = 8


class Round(nn.Module):
    """Each edge has a message, and each node adds up those that reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Sequential(
            nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
        )
        self.update = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        messages = self.message(torch.cat([x[source], x[target]], 1))
        total = torch.zeros_like(x).index_add(0, target, messages)
        return x + functional.relu(self.update(torch.cat([x, total], 1)))


class Graph(nn.Module):
    """float32[nodes, 32] and int64[2, edges] to float32[nodes, 8]"""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, WIDTH)
        self.rounds = nn.ModuleList(Round() for _ in range(ROUNDS))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        x = functional.relu(self.first(nodes))
        for one in self.rounds:
            x = one(x, edges)
        logits: Tensor = self.head(x)
        return logits


def build() -> nn.Module:
    torch.manual_seed(0)
    return Graph().eval()
