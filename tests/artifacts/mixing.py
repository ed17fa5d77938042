"""A small model with what a package must carry: parameters, a buffer, tied weights, relations."""

import torch
from torch import nn


class Mixer(nn.Module):
    mask: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.outer = nn.Linear(8, 8, bias=False)
        self.outer.weight = self.inner.weight
        self.register_buffer("mask", torch.arange(8, dtype=torch.float32) % 2)

    def forward(self, x: torch.Tensor, pairs: torch.Tensor) -> dict[str, torch.Tensor]:
        y = torch.tanh(self.inner(x)) * self.mask
        halves = pairs.reshape(x.shape[0], 2, 8).sum(1)
        return {"mixed": self.outer(y) + halves, "total": halves.sum()}


def build() -> nn.Module:
    torch.manual_seed(0)
    return Mixer()
