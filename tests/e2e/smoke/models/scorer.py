"""A tiny model: how alike two rows of features are."""

import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 4, bias=False)

    def forward(self, query: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.project(items)) @ torch.relu(self.project(query))


def build() -> nn.Module:
    """With weights that make the right answer easy to see: each output adds two features."""
    scorer = Scorer()
    with torch.no_grad():
        scorer.project.weight.copy_(torch.eye(4).repeat_interleave(2, dim=1))
    return scorer
