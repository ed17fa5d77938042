"""A model of two methods, whose results have structures and numbers; one of them is forward()."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Span(NamedTuple):
    """Both methods return it."""

    values: Tensor
    length: int


class Speech(nn.Module):
    """The table of tokens is a weight of both methods."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(10, 4, generator=generator))
        self.mix = nn.Parameter(torch.randn(4, 4, generator=generator))

    def encode(self, audio: Tensor) -> dict[str, Any]:
        """Audio [n, 4] -> a memory [n, 10] and facts about the audio."""
        memory = (audio @ self.mix) @ self.table.T
        return {
            "memory": Span(memory, audio.shape[0]),
            "loudness": audio.abs().mean().item(),
            "version": 2,
        }

    def forward(self, tokens: Tensor, memory: Tensor, k: int = 2) -> tuple[Tensor, list[Any]]:
        """Tokens [t], memory [n, 10] -> logits [t, n], and the k best of the last token."""
        logits = self.table[tokens] @ self.mix.T @ (memory @ self.table).T
        best = logits[-1].topk(k).values
        return logits, [Span(best, k), best.max().item(), None]
