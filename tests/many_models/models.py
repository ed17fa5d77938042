"""Tiny models whose answers are known without PyTorch."""

import torch
from torch import nn


class Affine(nn.Module):
    """``scale * x + shift``, by row of a batch."""

    def __init__(self, scale: float, shift: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), scale))
        self.shift = nn.Parameter(torch.full((4,), shift))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * x + self.shift


class Counter(nn.Module):
    """Adds the number of calls so far, this one included: the program keeps it in a buffer."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x + self.calls


def first() -> nn.Module:
    return Affine(scale=2.0, shift=1.0)


def second() -> nn.Module:
    return Affine(scale=-1.0, shift=10.0)
