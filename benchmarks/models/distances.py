"""An encoder as DeBERTa: attention that also reads how far words are apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 20000
WIDTH = 256
HEADS = 4
LENGTH = 128
FARTHEST = 64
LAYERS = 3


class Layer(nn.Module):
    """Scores of contents with contents, with distances, and of distances with contents."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.merge = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, distances: Tensor, index: Tensor) -> Tensor:
        def heads(y: Tensor) -> Tensor:
            return y.view(*y.shape[:-1], HEADS, -1).transpose(-2, -3)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        far_query, far_key = heads(self.query(distances)), heads(self.key(distances))
        shape = (x.shape[0], HEADS, LENGTH, LENGTH)
        scores = query @ key.transpose(-1, -2)
        scores = scores + (query @ far_key.transpose(-1, -2)).gather(-1, index.expand(shape))
        of_distances = (key @ far_query.transpose(-1, -2)).gather(-1, index.expand(shape))
        scores = (scores + of_distances.transpose(-1, -2)) / (3 * WIDTH / HEADS) ** 0.5
        y = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        x = self.norms[0](x + self.merge(y))
        result: Tensor = self.norms[1](x + self.layers(x))
        return result


class Distances(nn.Module):
    """int64[batch, 128] to float32[batch, 128, 256]"""

    index: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.distances = nn.Parameter(torch.randn(2 * FARTHEST, WIDTH) * 0.1)
        self.encoder = nn.ModuleList(Layer() for _ in range(LAYERS))
        places = torch.arange(LENGTH)
        apart = (places[:, None] - places).clamp(-FARTHEST, FARTHEST - 1) + FARTHEST
        self.register_buffer("index", apart)

    def forward(self, words: Tensor) -> Tensor:
        x = functional.layer_norm(self.words(words), (WIDTH,))
        for layer in self.encoder:
            x = layer(x, self.distances, self.index)
        return x


def build() -> nn.Module:
    torch.manual_seed(0)
    return Distances().eval()
