"""Boards of Go, as AlphaZero sees them: a tower of residual blocks, moves and who wins."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

PLANES = 17
SIDE = 19
WIDTH = 96
BLOCKS = 6
HIDDEN = 256


def convolution(inputs: int, outputs: int, size: int, scale: float = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight)
    norm = nn.BatchNorm2d(outputs)
    nn.init.constant_(norm.weight, scale)
    return nn.Sequential(layer, norm)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = convolution(WIDTH, WIDTH, 3), convolution(WIDTH, WIDTH, 3, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.first(x))
        return functional.relu(self.second(y) + x)


class Boards(nn.Module):
    """float32[batch, 17, 19, 19] to scores of moves, float32[batch, 362], and float32[batch, 1]"""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Sequential(convolution(PLANES, WIDTH, 3), nn.ReLU())
        self.tower = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.moves = nn.Sequential(convolution(WIDTH, 2, 1), nn.ReLU())
        self.value = nn.Sequential(convolution(WIDTH, 1, 1), nn.ReLU())
        self.move = nn.Linear(2 * SIDE * SIDE, SIDE * SIDE + 1)
        self.hidden = nn.Linear(SIDE * SIDE, HIDDEN)
        self.winner = nn.Linear(HIDDEN, 1)

    def forward(self, boards: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tower(self.start(boards))
        moves = self.moves(x)
        move = self.move(moves.view(moves.size(0), -1))
        value = self.value(x)
        value = functional.relu(self.hidden(value.view(value.size(0), -1)))
        return move, torch.tanh(self.winner(value))


def build() -> nn.Module:
    torch.manual_seed(0)
    return Boards().eval()
