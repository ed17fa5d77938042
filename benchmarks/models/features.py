"""A language model, as Performer: random features stand for softmax, sums run over the past."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH = 256
HEADS = 4
SIZE = WIDTH // HEADS
FEATURES = int(SIZE * math.log(SIZE))
WORDS = 4096
TOKENS = 256
PART = 64
LAYERS = 3


def directions() -> Tensor:
    """Rows that are orthogonal in blocks, as long as random ones."""
    blocks = [torch.linalg.qr(torch.randn(SIZE, SIZE))[0].T for _ in range(0, FEATURES, SIZE)]
    lengths: Tensor = torch.linalg.vector_norm(torch.randn(FEATURES, SIZE), dim=1, keepdim=True)
    return torch.cat(blocks)[:FEATURES] * lengths


def positive(x: Tensor, rows: Tensor, dims: tuple[int, ...]) -> Tensor:
    """exp of the products with random rows, less the greatest over dims."""
    scale = SIZE**-0.25
    products = torch.einsum("bhid,jd->bhij", scale * x, rows)
    squares = (x**2).sum(dim=-1, keepdim=True) * (0.5 * scale**2)
    greatest = torch.amax(products, dim=dims, keepdim=True)
    result: Tensor = FEATURES**-0.5 * (torch.exp(products - squares - greatest) + 1e-4)
    return result


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Linear attention to the past, in parts so that the running sums stay small."""
    keys: Tensor | float = 0.0
    pairs: Tensor | float = 0.0
    results = []
    parts = zip(*(x.chunk(TOKENS // PART, dim=-2) for x in (query, key, value)), strict=True)
    for q, k, v in parts:
        key_sums = keys + k.cumsum(dim=-2)
        pair_sums = pairs + torch.einsum("...nd,...ne->...nde", k, v).cumsum(dim=-3)
        weight = 1 / (torch.einsum("...nd,...nd->...n", q, key_sums) + 1e-6)
        results.append(torch.einsum("...nde,...nd,...n->...ne", pair_sums, q, weight))
        keys, pairs = key_sums[..., -1:, :], pair_sums[..., -1:, :, :]
    return torch.cat(results, dim=-2)


class Attention(nn.Module):
    rows: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.outputs = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("rows", directions())

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            layer(x).reshape(-1, TOKENS, HEADS, SIZE).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = positive(query, self.rows, (-1,)), positive(key, self.rows, (-1, -2))
        y = causal(query, key, value).transpose(1, 2).reshape(-1, TOKENS, WIDTH)
        result: Tensor = self.outputs(y)
        return result


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        result: Tensor = x + self.layers(self.norms[1](x))
        return result


class Features(nn.Module):
    """int64[batch, 256] to float32[batch, 256, 4096]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.randn(TOKENS, WIDTH) * 0.5)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.head(self.norm(self.layers(self.words(words) + self.places)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Features().eval()
