"""The model's source: needed to freeze it, not to build it."""

import torch
from torch import nn


class Scorer(nn.Module):
    """Features to a score between 0 and 1."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.score = nn.Linear(16, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.score(torch.relu(self.hidden(features))))
