"""Words as RetNet reads them: scores that fade with distance, in the place of a softmax."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 8000
WIDTH = 256
HEADS = 4
LENGTH = 256
LAYERS = 3


class Layer(nn.Module):
    """Fading scores, a norm for each head, a gate, and two linear layers."""

    fading: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.query, self.key, self.value, self.gate, self.outputs = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(5)
        )
        self.heads = nn.GroupNorm(HEADS, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        places = torch.arange(LENGTH)
        rates = 1 - 2.0 ** (-5 - torch.arange(HEADS))
        far = (places[:, None] - places).float()
        fading = rates[:, None, None] ** far.clamp(min=0) * (far >= 0)
        self.register_buffer("fading", fading * (WIDTH / HEADS) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        query, key, value = (
            layer(y).view(*y.shape[:2], HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) * self.fading
        scores = scores / scores.detach().sum(-1, keepdim=True).abs().clamp(min=1)
        mixed = (scores @ value).transpose(1, 2).reshape(-1, WIDTH)
        mixed = self.heads(mixed).view(y.shape)
        x = x + self.outputs(functional.silu(self.gate(y)) * mixed)
        result: Tensor = x + self.layers(self.norms[1](x))
        return result


class Retention(nn.Module):
    """int64[batch, 256] to float32[batch, 256, 8000]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.head(self.layers(self.words(words)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Retention().eval()
