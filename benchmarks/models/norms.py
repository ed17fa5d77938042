"""Batch norms as after training, for networks with random weights."""

from __future__ import annotations

import torch
from torch import nn


def vary(norm: nn.BatchNorm2d) -> None:
    """Gives each channel a scale and statistics of its own."""
    nn.init.uniform_(norm.weight, 0.7, 1.3)
    norm.register_buffer("running_mean", torch.randn(norm.num_features) * 0.1)
    norm.register_buffer("running_var", torch.rand(norm.num_features) + 0.5)
