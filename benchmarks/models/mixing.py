"""Values of a team's moves, as QMIX: networks of the state give the weights that mix players."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

STEPS = 100
PLAYERS = 27
VIEW = 285
STATE = 1170
MOVES = 36
HIDDEN = 64
MIXED = 32


class Player(nn.Module):
    """One network for all players; each remembers its own game"""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(VIEW, HIDDEN)
        self.memory = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.values = nn.Linear(HIDDEN, MOVES)

    def forward(self, views: Tensor) -> Tensor:
        batch, steps, players, _ = views.shape
        x = functional.relu(self.start(views)).transpose(1, 2)
        y, _ = self.memory(x.reshape(batch * players, steps, HIDDEN))
        result: Tensor = self.values(y).view(batch, players, steps, MOVES).transpose(1, 2)
        return result


class Mixer(nn.Module):
    """Weights are never negative, so that what is better for a player is so for the team."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ModuleList(
            nn.Sequential(nn.Linear(STATE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))
            for outputs in (MIXED * PLAYERS, MIXED)
        )
        self.bias = nn.Linear(STATE, MIXED)
        self.value = nn.Sequential(nn.Linear(STATE, MIXED), nn.ReLU(), nn.Linear(MIXED, 1))

    def forward(self, values: Tensor, states: Tensor) -> Tensor:
        batch = states.shape[0]
        states = states.reshape(-1, STATE)
        first = self.weights[0](states).abs().view(-1, PLAYERS, MIXED)
        bias = self.bias(states).view(-1, 1, MIXED)
        hidden = functional.elu(torch.bmm(values.reshape(-1, 1, PLAYERS), first) + bias)
        second = self.weights[1](states).abs().view(-1, MIXED, 1)
        value = self.value(states).view(-1, 1, 1)
        result: Tensor = (torch.bmm(hidden, second) + value).view(batch, -1)
        return result


class Mixing(nn.Module):
    """float32[batch, 100, 27, 285], float32[batch, 100, 1170] and int64[batch, 100, 27] of moves

    To float32[batch, 100].
    """

    def __init__(self) -> None:
        super().__init__()
        self.player, self.mixer = Player(), Mixer()
        for layer in self.player.modules():
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, views: Tensor, states: Tensor, moves: Tensor) -> Tensor:
        values = self.player(views).gather(3, moves.unsqueeze(-1)).squeeze(-1)
        result: Tensor = self.mixer(values, states)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Mixing().eval()
