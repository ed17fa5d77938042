"""Digits by capsules: vectors vote for the vectors of the digits, and agreement decides."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 256
KINDS = 32
INPUTS = 8
OUTPUTS = 16
CLASSES = 10
CAPSULES = KINDS * 6 * 6
ITERATIONS = 3


def squash(x: Tensor) -> Tensor:
    """Keeps the direction, and makes the length less than 1."""
    squared = (x**2).sum(-1, keepdim=True)
    return squared / (1 + squared) * x / torch.sqrt(squared + 1e-8)


class Primary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(CHANNELS, KINDS * INPUTS, 9, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x).view(-1, KINDS, INPUTS, 6, 6)
        return squash(y.permute(0, 1, 3, 4, 2).reshape(-1, CAPSULES, INPUTS))


class Routing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(CLASSES, CAPSULES, OUTPUTS, INPUTS) * 0.07)

    def forward(self, x: Tensor) -> Tensor:
        votes = torch.einsum("coij,bcj->bcoi", self.weights.transpose(0, 1), x)
        scores = torch.zeros_like(votes[..., 0])
        for _ in range(ITERATIONS - 1):
            shares = scores.softmax(2)
            found = squash(torch.einsum("bco,bcoi->boi", shares, votes))
            scores = scores + torch.einsum("bcoi,boi->bco", votes, found)
        shares = scores.softmax(2)
        return squash(torch.einsum("bco,bcoi->boi", shares, votes))


class Capsules(nn.Module):
    """float32[batch, 1, 28, 28] and int64[batch] to float32[batch, 10] and float32[batch, 784]

    How sure each digit is, and the picture of the given one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv2d(1, CHANNELS, 9)
        self.primary = Primary()
        self.routing = Routing()
        self.decoder = nn.Sequential(
            nn.Linear(CLASSES * OUTPUTS, 512),
            nn.ReLU(),
            nn.Linear(512, 1024),
            nn.ReLU(),
            nn.Linear(1024, 28 * 28),
            nn.Sigmoid(),
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, pictures: Tensor, digits: Tensor) -> tuple[Tensor, Tensor]:
        x = self.primary(functional.relu(self.start(pictures)))
        found = self.routing(x)
        lengths = torch.sqrt((found**2).sum(-1))
        kept = found * functional.one_hot(digits, CLASSES).to(found.dtype).unsqueeze(-1)
        return lengths, self.decoder(kept.flatten(1))


def build() -> nn.Module:
    torch.manual_seed(0)
    return Capsules().eval()
