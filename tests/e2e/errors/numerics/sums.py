"""Sums in another order than eager PyTorch: right, but not to the last bit."""

import torch
from torch import nn


class Sums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(3 * x).softmax(dim=-1).square().sum(dim=-1)


def build() -> nn.Module:
    return Sums()
