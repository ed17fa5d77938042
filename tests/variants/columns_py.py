"""A softmax over columns."""

import torch
from torch import Tensor, nn


class Columns(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        """Logits [4, n] -> probabilities [4, n]."""
        return torch.softmax(x, dim=0)
