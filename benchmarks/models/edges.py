"""A graph attention network: each node weighs the nodes that point to it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

FEATURES = 64
HEADS = 4
WIDTH = 32
CLASSES = 8


class Layer(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, HEADS * WIDTH)
        self.source = nn.Parameter(torch.randn(HEADS, WIDTH) / 8)
        self.target = nn.Parameter(torch.randn(HEADS, WIDTH) / 8)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        y = self.project(x).view(-1, HEADS, WIDTH)
        of_source, of_target = (y * self.source).sum(-1), (y * self.target).sum(-1)
        scores = functional.leaky_relu(of_source[source] + of_target[target], 0.2)
        weights = scores.exp()
        total = torch.zeros_like(of_target).index_add(0, target, weights)
        mixed = torch.zeros_like(y).index_add(0, target, y[source] * weights[..., None])
        return (mixed / (total + 1e-9)[..., None]).flatten(1)


class Edges(nn.Module):
    """float32[nodes, 64] and int64[2, edges] to float32[nodes, 8]"""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList((Layer(FEATURES), Layer(HEADS * WIDTH)))
        self.head = nn.Linear(HEADS * WIDTH, CLASSES)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        x = nodes
        for layer in self.layers:
            x = functional.elu(layer(x, edges))
        result: Tensor = self.head(x)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Edges().eval()
