"""Pairs of residues of a protein, as in the Evoformer: triangles of products, and attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

RESIDUES = 64
WIDTH = 64
HEADS = 4
LAYERS = 2


class Product(nn.Module):
    """Each pair hears of all triangles that it is a side of."""

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.first, self.second, self.outputs = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        first = self.gates[0](y).sigmoid() * self.first(y)
        second = self.gates[1](y).sigmoid() * self.second(y)
        products = self.norms[1](torch.einsum(self.equation, first, second))
        result: Tensor = x + self.gates[2](y).sigmoid() * self.outputs(products)
        return result


class Attention(nn.Module):
    """Pairs of one residue listen to each other, as the third side of the triangle tells."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.bias = nn.Linear(WIDTH, HEADS, bias=False)
        self.gate, self.outputs = (nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        shape = (*y.shape[:3], HEADS, WIDTH // HEADS)
        query, key, value = (
            layer(y).view(shape).transpose(2, 3) for layer in (self.query, self.key, self.value)
        )
        bias = self.bias(y).permute(0, 3, 1, 2)[:, None]
        scores = query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + bias
        z = (scores.softmax(-1) @ value).transpose(2, 3).flatten(3)
        result: Tensor = x + self.outputs(self.gate(y).sigmoid() * z)
        return result


class Layer(nn.Module):
    """Both products, attention, and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Product("bikc,bjkc->bijc"), Product("bkic,bkjc->bijc"), Attention()
        )
        self.end = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(x)
        result: Tensor = x + self.end(x)
        return result


def build() -> nn.Module:
    """float32[batch, 64, 64, 64] to the same"""
    torch.manual_seed(0)
    return nn.Sequential(*(Layer() for _ in range(LAYERS))).eval()
