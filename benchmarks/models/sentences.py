"""A translator as the first Transformer: scores that are hidden are replaced by -1e9."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

WORDS = 8000
WIDTH = 256
HEADS = 8
LAYERS = 2


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.outputs = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (
            layer(z).view(z.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)
            for layer, z in ((self.query, x), (self.key, y), (self.value, y))
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(mask == 0, -1e9)
        z = torch.matmul(scores.softmax(-1), value).transpose(1, 2).contiguous()
        result: Tensor = self.outputs(z.view(x.shape[0], -1, WIDTH))
        return result


class Layer(nn.Module):
    """Attention within, perhaps to another sentence, and two layers; norms come first."""

    def __init__(self, to_another: bool) -> None:
        super().__init__()
        self.own = Attention()
        self.other = Attention() if to_another else None
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(
        self, x: Tensor, mask: Tensor, memory: Tensor | None, memory_mask: Tensor
    ) -> Tensor:
        y = self.norms[0](x)
        x = x + self.own(y, y, mask)
        if self.other is not None and memory is not None:
            x = x + self.other(self.norms[1](x), memory, memory_mask)
        result: Tensor = x + self.layers(self.norms[2](x))
        return result


class Sentences(nn.Module):
    """int64[batch, 64] and int64[batch, 48] to float32[batch, 48, 8000]; word 0 is no word"""

    earlier: Tensor
    places: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.ModuleList(nn.Embedding(WORDS, WIDTH) for _ in range(2))
        self.encoder = nn.ModuleList(Layer(to_another=False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(to_another=True) for _ in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)
        places = torch.arange(64.0)[:, None]
        angles = places * torch.exp(torch.arange(0, WIDTH, 2) * -(math.log(10000.0) / WIDTH))
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.register_buffer("earlier", torch.ones(1, 48, 48, dtype=torch.bool).tril())

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        source_mask = (source != 0)[:, None, None, :]
        target_mask = ((target != 0)[:, None, :] & self.earlier)[:, None]
        x, y = (
            words(sentence) * math.sqrt(WIDTH) + self.places[: sentence.shape[1]]
            for words, sentence in zip(self.words, (source, target), strict=True)
        )
        for layer in self.encoder:
            x = layer(x, source_mask, None, source_mask)
        x = self.norms[0](x)
        for layer in self.decoder:
            y = layer(y, target_mask, x, source_mask)
        result: Tensor = self.head(self.norms[1](y)).log_softmax(-1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Sentences().eval()
