"""Embeds numbers by the bucket that each is in."""

import torch
from torch import Tensor, nn

EDGES = (18.0, 30.0, 45.0, 65.0)
UNKNOWN = len(EDGES) + 1


class AgeEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.buckets = torch.classes.example.Buckets(torch.tensor(EDGES), UNKNOWN)
        self.table = nn.Embedding(UNKNOWN + 1, 8)

    def forward(self, ages: Tensor) -> Tensor:
        """[people] -> [people, 8]."""
        result: Tensor = self.table(self.buckets.find(ages))
        return result
