"""A softmax over columns: for one column, the loop over rows is the one to vectorise."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Columns(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        """Logits [256, n] -> probabilities [256, n]."""
        return torch.softmax(torch.tanh(input), dim=0)
