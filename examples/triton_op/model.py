"""A feed-forward block whose gated part is an operator that is written with Triton."""

import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.gate = nn.Linear(16, 24)
        self.up = nn.Linear(16, 24)
        self.down = nn.Linear(24, 16)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, 16] -> [rows, 16]."""
        y = self.norm(x)
        hidden = torch.ops.example_triton.swiglu(self.gate(y), self.up(y))
        result: Tensor = x + self.down(hidden)
        return result
