"""A program whose kernels are faster with wide vectors."""

from __future__ import annotations

import torch


class Normed(torch.nn.Module):
    """A reduction by Welford's algorithm, transcendental functions, and a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(2048)
        self.linear = torch.nn.Linear(2048, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = torch.nn.functional.gelu(self.norm(x))
        return torch.softmax(self.linear(normed), -1)


def normed() -> torch.nn.Module:
    torch.manual_seed(0)
    return Normed().eval()
