"""An encoder of Deformable DETR: each pixel looks at a few places of images of three sizes."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 128
HEADS = 4
POINTS = 4
SIDES = (32, 16, 8)
LAYERS = 2


class Attention(nn.Module):
    """Places and weights come from the query; values are read between pixels."""

    def __init__(self) -> None:
        super().__init__()
        count = HEADS * len(SIDES) * POINTS
        self.offsets, self.weights = nn.Linear(WIDTH, 2 * count), nn.Linear(WIDTH, count)
        self.values, self.outputs = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, query: Tensor, x: Tensor, places: Tensor) -> Tensor:
        batch, count, _ = query.shape
        values = self.values(x).view(batch, count, HEADS, -1)
        offsets = self.offsets(query).view(batch, count, HEADS, len(SIDES), POINTS, 2)
        weights = self.weights(query).view(batch, count, HEADS, -1).softmax(-1)
        weights = weights.view(batch, count, HEADS, len(SIDES), POINTS)
        sampled = []
        first = 0
        for level, side in enumerate(SIDES):
            image = values[:, first : first + side * side].permute(0, 2, 3, 1)
            first += side * side
            at = 2 * (places[:, None, None] + offsets[:, :, :, level] / side) - 1
            found = functional.grid_sample(
                image.reshape(batch * HEADS, -1, side, side),
                at.transpose(1, 2).flatten(0, 1),
                align_corners=False,
            )
            weight = weights[:, :, :, level].transpose(1, 2).flatten(0, 1)
            sampled.append((found * weight[:, None]).sum(-1))
        y = torch.stack(sampled).sum(0).view(batch, WIDTH, count)
        result: Tensor = self.outputs(y.transpose(1, 2))
        return result


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, order: Tensor, places: Tensor) -> Tensor:
        x = self.norms[0](x + self.attention(x + order, x, places))
        result: Tensor = self.norms[1](x + self.layers(x))
        return result


class Offsets(nn.Module):
    """float32[batch, 3, 256, 256] to float32[batch, 1344, 128]"""

    places: Tensor

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 32, 64, 96)
        self.stem = nn.Sequential(
            *(
                part
                for a, b in itertools.pairwise(widths)
                for part in (
                    nn.Conv2d(a, b, 3, 2, 1, bias=False),
                    nn.BatchNorm2d(b),
                    nn.ReLU(),
                )
            )
        )
        self.sizes = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, WIDTH, 3, s, 1), nn.GroupNorm(32, WIDTH))
            for a, s in ((96, 1), (WIDTH, 2), (WIDTH, 2))
        )
        count = sum(side * side for side in SIDES)
        self.order = nn.Parameter(torch.randn(count, WIDTH) * 0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        rows = [(torch.arange(side) + 0.5) / side for side in SIDES]
        self.register_buffer("places", torch.cat([torch.cartesian_prod(r, r) for r in rows]))

    def forward(self, pictures: Tensor) -> Tensor:
        x, parts = self.stem(pictures), []
        for size in self.sizes:
            x = size(x)
            parts.append(x.flatten(2).transpose(1, 2))
        y = torch.cat(parts, 1)
        for layer in self.layers:
            y = layer(y, self.order, self.places)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    return Offsets().eval()
