"""Optical flow, as PWC-Net: from small to large pictures, products with the warped second one."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

RADIUS = 4
SHIFTS = (2 * RADIUS + 1) ** 2
FEATURES = (16, 32, 64, 96, 128, 196)
DENSE = (128, 128, 96, 64, 32)
CONTEXT = (128, 128, 128, 96, 64, 32)
DILATIONS = (1, 2, 4, 8, 16, 1)
LAST = 2
SCALE = 20.0


def layer(inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation), nn.LeakyReLU(0.1)
    )


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Mean products with the second features at all places near."""
    height, width = first.shape[-2:]
    second = functional.pad(second, (RADIUS,) * 4)
    found = []
    for row in range(2 * RADIUS + 1):
        for column in range(2 * RADIUS + 1):
            moved = second[:, :, row : row + height, column : column + width]
            found.append((first * moved).mean(1, keepdim=True))
    return torch.cat(found, 1)


def warp(x: Tensor, flow: Tensor) -> Tensor:
    """What is where the flow leads, or zeros where that is outside."""
    batch, _, height, width = x.shape
    columns = torch.arange(width).view(1, 1, 1, width).expand(batch, 1, height, width)
    rows = torch.arange(height).view(1, 1, height, 1).expand(batch, 1, height, width)
    places = torch.cat((columns, rows), 1).float() + flow
    places_x = 2 * places[:, 0] / max(width - 1, 1) - 1
    places_y = 2 * places[:, 1] / max(height - 1, 1) - 1
    grid = torch.stack((places_x, places_y), 3)
    found = functional.grid_sample(x, grid, align_corners=True)
    inside = functional.grid_sample(torch.ones_like(x), grid, align_corners=True)
    return found * (inside > 0.999).float()


class Estimator(nn.Module):
    """Layers that see the results of all before; a flow, and what it came from."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        width = SHIFTS + (features + 4 if features else 0)
        for more in DENSE:
            self.layers.append(layer(width, more))
            width += more
        self.width = width
        self.flow = nn.Conv2d(width, 2, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for layer in self.layers:
            x = torch.cat((layer(x), x), 1)
        return self.flow(x), x


class Flow(nn.Module):
    """Two pictures, float32[batch, 3, 64, 128], to the flow, float32[batch, 2, 64, 128]"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.ModuleList(
            nn.Sequential(layer(a, b, 2), layer(b, b), layer(b, b))
            for a, b in itertools.pairwise((3, *FEATURES))
        )
        sizes = (0, *FEATURES[LAST - 1 : -1][::-1])
        self.estimators = nn.ModuleList(Estimator(size) for size in sizes)
        widths = [SHIFTS + (size + 4 if size else 0) + sum(DENSE) for size in sizes]
        self.grow_flow = nn.ModuleList(nn.ConvTranspose2d(2, 2, 4, 2, 1) for _ in sizes[1:])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(w, 2, 4, 2, 1) for w in widths[:-1])
        around = itertools.pairwise((widths[-1], *CONTEXT))
        self.context = nn.Sequential(
            *(layer(a, b, dilation=d) for (a, b), d in zip(around, DILATIONS, strict=True)),
            nn.Conv2d(CONTEXT[-1], 2, 3, padding=1),
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        ones, twos = [first], [second]
        for features in self.features:
            ones.append(features(ones[-1]))
            twos.append(features(twos[-1]))
        found = functional.leaky_relu(correlation(ones[-1], twos[-1]), 0.1)
        flow, x = self.estimators[0](found)
        steps = zip(self.estimators[1:], self.grow_flow, self.grow, strict=True)
        for level, (estimator, grow_flow, grow) in zip(
            range(len(FEATURES) - 1, LAST - 1, -1), steps, strict=True
        ):
            flow, more = grow_flow(flow), grow(x)
            warped = warp(twos[level], flow * (SCALE / 2**level))
            found = functional.leaky_relu(correlation(ones[level], warped), 0.1)
            flow, x = estimator(torch.cat((found, ones[level], flow, more), 1))
        flow = SCALE * (flow + self.context(x))
        return functional.interpolate(
            flow, scale_factor=2**LAST, mode="bilinear", align_corners=False
        )


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Flow()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, 0.1)
        elif isinstance(part, nn.ConvTranspose2d):
            nn.init.normal_(part.weight, std=0.5 / part.in_channels**0.5)
    return model.eval()
