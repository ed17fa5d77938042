"""A small network that scores rows of features."""

from torch import Tensor, nn


class Scorer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))

    def forward(self, features: Tensor) -> Tensor:
        scores: Tensor = self.layers(features).squeeze(-1).sigmoid()
        return scores
