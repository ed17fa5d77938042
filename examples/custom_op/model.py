"""A feed-forward block whose gated part is an operator in C++."""

import torch
from torch import Tensor, nn

WIDTH = 16
HIDDEN = 24


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.gate = nn.Parameter(torch.randn(WIDTH, HIDDEN) / 4)
        self.up = nn.Parameter(torch.randn(WIDTH, HIDDEN) / 4)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, 16] -> [rows, 16]."""
        hidden = torch.ops.example.swiglu(self.norm(x), self.gate, self.up, limit=2.0)
        result: Tensor = x + self.down(hidden)
        return result
