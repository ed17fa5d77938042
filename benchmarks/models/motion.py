"""Optical flow (RAFT): steps of a recurrent network that look features up where things moved."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 64
ROUNDS = 4
RADIUS = 2
LOOKUPS = (2 * RADIUS + 1) ** 2


class Update(nn.Module):
    """A GRU of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Conv2d(LOOKUPS + 2, WIDTH, 3, padding=1)
        self.gates = nn.Conv2d(2 * WIDTH, 2 * WIDTH, 3, padding=1)
        self.state = nn.Conv2d(2 * WIDTH, WIDTH, 3, padding=1)
        self.flow = nn.Conv2d(WIDTH, 2, 3, padding=1)

    def forward(self, state: Tensor, found: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.relu(self.seen(torch.cat((found, flow), 1)))
        update, reset = self.gates(torch.cat((state, x), 1)).sigmoid().chunk(2, 1)
        new = torch.tanh(self.state(torch.cat((reset * state, x), 1)))
        state = (1 - update) * state + update * new
        return state, flow + self.flow(state)


class Motion(nn.Module):
    """Two pictures, float32[batch, 3, 128, 160], to the flow, float32[batch, 2, 32, 40]"""

    around: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, WIDTH, 7, 2, 3),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, 1, 1),
        )
        self.update = Update()
        steps = torch.arange(-RADIUS, RADIUS + 1.0)
        around = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), -1).view(LOOKUPS, 1, 2)
        self.register_buffer("around", around)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        one, two = self.features(first), self.features(second)
        batch, width, rows, columns = one.shape
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        here = torch.stack((x, y), -1).float()
        size = here.new_tensor([columns - 1, rows - 1])
        products = one.flatten(2).transpose(1, 2) @ two.flatten(2) / width**0.5
        products = products.view(batch * rows * columns, 1, rows, columns)
        state = torch.tanh(one)
        flow: Tensor = one.new_zeros(batch, 2, rows, columns)
        for _ in range(ROUNDS):
            places = (here + flow.permute(0, 2, 3, 1)).reshape(-1, 1, 1, 2) + self.around
            found = functional.grid_sample(products, places * 2 / size - 1, align_corners=True)
            found = found.view(batch, rows, columns, LOOKUPS).permute(0, 3, 1, 2)
            state, flow = self.update(state, found, flow)
        return flow


def build() -> nn.Module:
    torch.manual_seed(0)
    return Motion().eval()
