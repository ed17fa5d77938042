"""A language model that remembers the segment before, as Transformer-XL: relative positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WIDTH = 410
HEADS = 10
SIZE = WIDTH // HEADS
INNER = 2100
WORDS = 5000
TOKENS = 128
REMEMBERED = 128
LAYERS = 3


def shifted(x: Tensor) -> Tensor:
    """Rows [query, place] of what belongs to a distance, moved so that each is at its key."""
    zeros = x.new_zeros((x.shape[0], 1, *x.shape[2:]))
    padded = torch.cat([zeros, x], dim=1)
    padded = padded.view(x.shape[1] + 1, x.shape[0], *x.shape[2:])
    return padded[1:].view_as(x)


class Attention(nn.Module):
    """Scores are of contents and of distances, each with a bias of the whole model."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.distances = nn.Linear(WIDTH, WIDTH, bias=False)
        self.outputs = nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(
        self, x: Tensor, memory: Tensor, places: Tensor, biases: Tensor, hidden: Tensor
    ) -> Tensor:
        count, batch, _ = x.shape
        query, key, value = self.inputs(torch.cat([memory, x], dim=0)).chunk(3, dim=-1)
        query = query[-count:].view(count, batch, HEADS, SIZE)
        key = key.view(key.shape[0], batch, HEADS, SIZE)
        value = value.view(value.shape[0], batch, HEADS, SIZE)
        distance = self.distances(places).view(-1, HEADS, SIZE)
        of_contents = torch.einsum("ibnd,jbnd->ijbn", query + biases[0], key)
        of_distances = shifted(torch.einsum("ibnd,jnd->ijbn", query + biases[1], distance))
        scores = (of_contents + of_distances) * (1 / math.sqrt(SIZE))
        scores = scores.masked_fill(hidden[:, :, None, None], -math.inf)
        y = torch.einsum("ijbn,jbnd->ibnd", scores.softmax(dim=1), value)
        y = y.contiguous().view(count, batch, WIDTH)
        result: Tensor = self.norm(x + self.outputs(y))
        return result


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.layers = nn.Sequential(nn.Linear(WIDTH, INNER), nn.ReLU(), nn.Linear(INNER, WIDTH))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(
        self, x: Tensor, memory: Tensor, places: Tensor, biases: Tensor, hidden: Tensor
    ) -> Tensor:
        x = self.attention(x, memory, places, biases, hidden)
        result: Tensor = self.norm(x + self.layers(x))
        return result


class Memory(nn.Module):
    """int64[batch, 128] and float32[batch, 3, 128, 410] to float32[batch, 128, 5000] and the
    next segment's float32[batch, 3, 128, 410]
    """

    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        nn.init.normal_(self.words.weight, std=WIDTH**-0.5)
        self.biases = nn.Parameter(torch.randn(2, HEADS, SIZE) * 0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)
        self.head.weight = self.words.weight
        self.register_buffer("frequencies", 10000 ** -(torch.arange(0.0, WIDTH, 2) / WIDTH))

    def forward(self, words: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        total = REMEMBERED + TOKENS
        distances = torch.arange(total - 1, -1, -1.0, device=words.device)
        angles = torch.outer(distances, self.frequencies)
        places = torch.cat([angles.sin(), angles.cos()], dim=-1)
        ones = torch.ones(TOKENS, total, dtype=torch.bool, device=words.device)
        hidden = torch.triu(ones, diagonal=1 + REMEMBERED)
        x = self.words(words).transpose(0, 1) * math.sqrt(WIDTH)
        remembered = memory.permute(1, 2, 0, 3)
        kept = []
        for layer, before in zip(self.layers, remembered.unbind(0), strict=True):
            kept.append(torch.cat([before, x], dim=0)[-REMEMBERED:])
            x = layer(x, before, places, self.biases, hidden)
        return self.head(x).transpose(0, 1), torch.stack(kept).permute(2, 0, 1, 3)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Memory().eval()
