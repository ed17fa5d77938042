"""A recurrent model with its state in a buffer, for what sessions cost."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SIZE = 256


class Stream(nn.Module):
    """One step of a GRU: float32[1, 64] -> float32[1, 8]."""

    hidden: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(64, SIZE)
        self.head = nn.Linear(SIZE, 8)
        self.register_buffer("hidden", torch.zeros(1, SIZE))

    def forward(self, x: Tensor) -> Tensor:
        self.hidden.copy_(self.cell(x, self.hidden))
        result: Tensor = self.head(self.hidden)
        return result
