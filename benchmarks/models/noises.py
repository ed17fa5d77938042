"""What makes a noise, as CNN14 of PANNs with half of its channels: means of convolved spectra."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDS = 64
WIDTHS = (1, 32, 64, 128, 256, 512, 1024)
CLASSES = 527


def balance(layer: nn.Conv2d | nn.Linear, gain: float) -> None:
    """Weights of each output add up to zero, so that the mean of its inputs doesn't matter."""
    nn.init.kaiming_normal_(layer.weight)
    with torch.no_grad():
        weight = layer.weight.flatten(1)
        weight = gain * (weight - weight.mean(1, keepdim=True))
        layer.weight.copy_(weight.view_as(layer.weight))


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        balance(self.first, 2.0)
        balance(self.second, 1.2)

    def forward(self, x: Tensor, size: int) -> Tensor:
        x = functional.relu_(self.norms[0](self.first(x)))
        x = functional.relu_(self.norms[1](self.second(x)))
        return functional.avg_pool2d(x, size)


class Noises(nn.Module):
    """A spectrum, float32[batch, 1, 200, 64], to probabilities, float32[batch, 527]"""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(BANDS)
        self.blocks = nn.ModuleList(Block(a, b) for a, b in itertools.pairwise(WIDTHS))
        self.hidden = nn.Linear(WIDTHS[-1], WIDTHS[-1])
        self.head = nn.Linear(WIDTHS[-1], CLASSES)
        balance(self.hidden, 1.2)
        balance(self.head, 1.2)

    def forward(self, spectrum: Tensor) -> Tensor:
        x = self.norm(spectrum.transpose(1, 3)).transpose(1, 3)
        for i, block in enumerate(self.blocks):
            x = block(x, 2 if i + 1 < len(self.blocks) else 1)
            x = functional.dropout(x, 0.2, self.training)
        x = torch.mean(x, dim=3)
        most, _ = torch.max(x, dim=2)
        x = most + torch.mean(x, dim=2)
        x = functional.dropout(x, 0.5, self.training)
        x = functional.relu_(self.hidden(x))
        x = functional.dropout(x, 0.5, self.training)
        return torch.sigmoid(self.head(x))


def build() -> nn.Module:
    torch.manual_seed(0)
    return Noises().eval()
