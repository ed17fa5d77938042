"""Sums in another order than eager PyTorch: right, but not to the last bit."""

import torch
from torch import nn


class Sums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.sin(3 * x), dim=-1).cumsum(-1).tanh().sum(-1).exp()


def build() -> nn.Module:
    return Sums()
