"""A tagger: a GRU in both directions over words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WORDS = 20000
WIDTH = 128
TAGS = 32


class Tagger(nn.Module):
    """int64[batch, steps] to float32[batch, steps, 32]"""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.gru = nn.GRU(WIDTH, WIDTH, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * WIDTH, TAGS)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.gru(self.embedding(words))
        result: Tensor = self.head(states)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Tagger().eval()
