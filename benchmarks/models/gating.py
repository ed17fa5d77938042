"""Hidden words, as gMLP: no attention, half of the channels mixed over words gate the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 4000
WIDTH = 256
HIDDEN = 6 * WIDTH
LENGTH = 256
BLOCKS = 6


class Gate(nn.Module):
    """One half of the channels, times the other half after a linear layer over all words."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN // 2)
        self.weight = nn.Parameter(torch.randn(LENGTH, LENGTH) * 0.5 * LENGTH**-0.5)
        self.bias = nn.Parameter(torch.ones(LENGTH))

    def forward(self, x: Tensor) -> Tensor:
        kept, gate = x.chunk(2, dim=-1)
        return kept * functional.conv1d(self.norm(gate), self.weight[:, :, None], self.bias)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, HIDDEN),
            nn.GELU(),
            Gate(),
            nn.Linear(HIDDEN // 2, WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.layers(x)
        return result


class Gating(nn.Module):
    """int64[batch, 256] to float32[batch, 256, 4000]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.head(self.blocks(self.words(words)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Gating().eval()
