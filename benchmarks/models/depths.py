"""Depth Anything: a vision transformer as DINOv2, whose layers' images DPT puts together."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 384
HEADS = 6
LAYERS = 4
PATCH = 14
PLACES = 37
CHANNELS = (48, 96, 192, 384)
FEATURES = 64


class Layer(nn.Module):
    """Attention and two linear layers, each scaled by a number for each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, eps=1e-6) for _ in range(2))
        self.inputs, self.outputs = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.scales = nn.ParameterList(torch.rand(WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, count, _ = x.shape
        parts = self.inputs(self.norms[0](x)).reshape(batch, count, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (query * (WIDTH // HEADS) ** -0.5) @ key.transpose(-2, -1)
        y = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, count, WIDTH)
        x = x + self.outputs(y) * self.scales[0]
        result: Tensor = x + self.layers(self.norms[1](x)) * self.scales[1]
        return result


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(FEATURES, FEATURES, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(FEATURES, FEATURES, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x) + x
        return result


def large(x: Tensor, size: list[int]) -> Tensor:
    return functional.interpolate(x, size, mode="bilinear", align_corners=True)


class Depths(nn.Module):
    """float32[batch, 3, 112, 154] to float32[batch, 112, 154]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.2)
        self.places = nn.Parameter(torch.randn(1, 1 + PLACES * PLACES, WIDTH) * 0.2)
        self.layers, self.norm = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.projections = nn.ModuleList(nn.Conv2d(WIDTH, c, 1) for c in CHANNELS)
        a, b, _, d = CHANNELS
        up = [nn.ConvTranspose2d(a, a, 4, 4), nn.ConvTranspose2d(b, b, 2, 2)]
        self.sizes = nn.ModuleList([*up, nn.Identity(), nn.Conv2d(d, d, 3, 2, 1)])
        self.thin = nn.ModuleList(nn.Conv2d(c, FEATURES, 3, 1, 1, bias=False) for c in CHANNELS)
        self.sides, self.merges = (nn.ModuleList(Residual() for _ in CHANNELS) for _ in range(2))
        self.mixes = nn.ModuleList(nn.Conv2d(FEATURES, FEATURES, 1) for _ in CHANNELS)
        self.narrow = nn.Conv2d(FEATURES, 32, 3, padding=1)
        self.end = nn.Sequential(
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 1), nn.ReLU()
        )

    def order(self, height: int, width: int) -> Tensor:
        places = self.places[:, 1:].reshape(1, PLACES, PLACES, WIDTH).permute(0, 3, 1, 2)
        places = functional.interpolate(places, (height, width), mode="bicubic")
        return torch.cat([self.places[:, :1], places.permute(0, 2, 3, 1).flatten(1, 2)], 1)

    def forward(self, pictures: Tensor) -> Tensor:
        batch, _, high, wide = pictures.shape
        height, width = high // PATCH, wide // PATCH
        x = self.patches(pictures).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(batch, -1, -1), x], 1) + self.order(height, width)
        images = []
        for i, layer in enumerate(self.layers):
            x = layer(x)
            image = self.norm(x)[:, 1:].permute(0, 2, 1).reshape(batch, WIDTH, height, width)
            images.append(self.thin[i](self.sizes[i](self.projections[i](image))))
        y = self.merges[3](images[3])
        for i in (2, 1, 0):
            y = self.mixes[i + 1](large(y, list(images[i].shape[-2:])))
            y = self.merges[i](y + self.sides[i](images[i]))
        y = self.narrow(self.mixes[0](large(y, [2 * n for n in y.shape[-2:]])))
        result: Tensor = self.end(large(y, [high, wide])).squeeze(1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Depths()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="linear")
        elif isinstance(part, nn.ConvTranspose2d):
            nn.init.normal_(part.weight, std=part.in_channels**-0.5)
    return model.eval()
