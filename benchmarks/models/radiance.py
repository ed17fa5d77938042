"""A radiance field (NeRF): colours along rays, from sines of positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

SAMPLES = 64
FREQUENCIES = 10
WIDTH = 256
INPUTS = 3 + 6 * FREQUENCIES


class Radiance(nn.Module):
    """Origins and directions of rays, float32[batch, 16, 3], to colours, float32[batch, 16, 3]"""

    frequencies: Tensor
    depths: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.near = nn.ModuleList(nn.Linear(INPUTS if i == 0 else WIDTH, WIDTH) for i in range(4))
        self.far = nn.ModuleList(
            nn.Linear(INPUTS + WIDTH if i == 0 else WIDTH, WIDTH) for i in range(4)
        )
        self.density = nn.Linear(WIDTH, 1)
        self.colour = nn.Sequential(nn.Linear(WIDTH + 3, WIDTH // 2), nn.ReLU())
        self.head = nn.Linear(WIDTH // 2, 3)
        self.register_buffer("frequencies", 2.0 ** torch.arange(FREQUENCIES))
        self.register_buffer("depths", torch.linspace(1, 4, SAMPLES))

    def forward(self, origins: Tensor, directions: Tensor) -> Tensor:
        directions = functional.normalize(directions, dim=-1)
        places = origins[..., None, :] + directions[..., None, :] * self.depths[:, None]
        angles = (places[..., None] * self.frequencies).flatten(-2)
        inputs = torch.cat((places, angles.sin(), angles.cos()), -1)
        x = inputs
        for layer in self.near:
            x = functional.relu(layer(x))
        x = torch.cat((x, inputs), -1)
        for layer in self.far:
            x = functional.relu(layer(x))
        density = functional.softplus(self.density(x)[..., 0]) * (3 / SAMPLES)
        seen = directions[..., None, :].expand(places.shape)
        colours = self.head(self.colour(torch.cat((x, seen), -1))).sigmoid()
        left = (density - density.cumsum(-1)).exp()  # what comes through to a place
        result: Tensor = ((left * (1 - (-density).exp()))[..., None] * colours).sum(-2)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Radiance().eval()
