"""A classifier of texts: convolutions of several widths over words, and their maxima."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WORDS = 20000
WIDTH = 128
FILTERS = 100
KERNELS = (3, 4, 5)
CLASSES = 10


class Texts(nn.Module):
    """int64[batch, 200] to float32[batch, 10]"""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.filters = nn.ModuleList(nn.Conv1d(WIDTH, FILTERS, kernel) for kernel in KERNELS)
        self.head = nn.Linear(len(KERNELS) * FILTERS, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embedding(words).transpose(1, 2)
        found = [layer(x).relu().amax(2) for layer in self.filters]
        result: Tensor = self.head(torch.cat(found, dim=1))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Texts().eval()
