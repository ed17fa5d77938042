"""An encoder of text, as Nystromformer: attention by way of a few means of the tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 256
HEADS = 4
SIZE = WIDTH // HEADS
WORDS = 8192
TOKENS = 512
LANDMARKS = 64
ITERATIONS = 6
LAYERS = 3


def inverse(x: Tensor) -> Tensor:
    """Nearly the pseudo-inverse of softmaxed matrices, by Razavi's iteration."""
    one = torch.eye(x.shape[-1], device=x.device)
    norm = x.abs().sum(dim=-2).amax(dim=-1)[..., None, None]
    y = x.transpose(-1, -2) / norm
    for _ in range(ITERATIONS):
        xy = torch.matmul(x, y)
        inner = 15 * one - torch.matmul(xy, 7 * one - xy)
        y = torch.matmul(0.25 * y, 13 * one - torch.matmul(xy, inner))
    return y


class Attention(nn.Module):
    """Three softmaxed products in place of one, and a filter over each head's values."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.outputs = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        for layer in (self.query, self.key):
            nn.init.normal_(layer.weight, std=1.5 * WIDTH**-0.5)
        self.filter = nn.Conv2d(HEADS, HEADS, (33, 1), padding=(16, 0), groups=HEADS, bias=False)

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], TOKENS, HEADS, SIZE).permute(0, 2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        query, key = self.heads(self.query(x)) / SIZE**0.25, self.heads(self.key(x)) / SIZE**0.25
        value = self.heads(self.value(x))
        shape = (batch, HEADS, LANDMARKS, TOKENS // LANDMARKS, SIZE)
        queries, keys = query.reshape(shape).mean(dim=-2), key.reshape(shape).mean(dim=-2)
        first = functional.softmax(torch.matmul(query, keys.transpose(-1, -2)), dim=-1)
        second = functional.softmax(torch.matmul(queries, keys.transpose(-1, -2)), dim=-1)
        third = functional.softmax(torch.matmul(queries, key.transpose(-1, -2)), dim=-1)
        y = torch.matmul(torch.matmul(first, inverse(second)), torch.matmul(third, value))
        y = y + self.filter(value)
        y = y.permute(0, 2, 1, 3).contiguous().view(batch, TOKENS, WIDTH)
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


class Landmarks(nn.Module):
    """int64[batch, 512] to float32[batch, 512, 256]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, words: Tensor) -> Tensor:
        places = torch.arange(TOKENS, device=words.device)[None]
        x = self.words(words) + self.places(places)
        result: Tensor = self.norm(self.layers(x))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Landmarks().eval()
