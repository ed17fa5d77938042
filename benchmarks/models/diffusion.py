"""A U-Net that takes noise out of an image, as diffusion models have it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

LATENT = 4
WIDTHS = (64, 128, 256)
TIME = 256
HEADS = 4
GROUPS = 32


class Residual(nn.Module):
    """Two convolutions, between which the time is added, and a residual."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(GROUPS, size) for size in (inputs, outputs))
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(functional.silu(self.norms[0](x)))
        y = y + self.time(functional.silu(time))[:, :, None, None]
        result: Tensor = self.shortcut(x) + self.second(functional.silu(self.norms[1](y)))
        return result


class Attention(nn.Module):
    """Attention between the pixels of an image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width)
        self.query_key_value = nn.Conv2d(width, 3 * width, 1)
        self.merge = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, width, rows, columns = x.shape
        parts = self.query_key_value(self.norm(x))
        parts = parts.view(batch, 3, HEADS, width // HEADS, rows * columns).transpose(3, 4)
        y = functional.scaled_dot_product_attention(*parts.unbind(1)).transpose(2, 3)
        result: Tensor = x + self.merge(y.reshape(batch, width, rows, columns))
        return result


class Denoiser(nn.Module):
    """float32[batch, 4, height, width] and float32[batch] to an image of the same size."""

    def __init__(self) -> None:
        super().__init__()
        small, middle, large = WIDTHS
        self.time = nn.Sequential(nn.Linear(2 * GROUPS, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.first = nn.Conv2d(LATENT, small, 3, padding=1)
        self.down = nn.ModuleList([Residual(small, small), Residual(small, middle)])
        self.shrink = nn.ModuleList(
            nn.Conv2d(width, width, 3, stride=2, padding=1) for width in (small, middle)
        )
        self.attention = nn.ModuleList(Attention(width) for width in (middle, large, middle))
        self.deepest = nn.ModuleList([Residual(middle, large), Residual(large, middle)])
        self.up = nn.ModuleList([Residual(2 * middle, middle), Residual(middle + small, small)])
        self.enlarged = nn.Conv2d(middle, middle, 3, padding=1)
        self.last = nn.Sequential(
            nn.GroupNorm(GROUPS, small), nn.SiLU(), nn.Conv2d(small, LATENT, 3, padding=1)
        )

    def forward(self, images: Tensor, steps: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(GROUPS) * (-math.log(1e4) / GROUPS))
        angles = steps[:, None] * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        large = self.down[0](self.first(images), time)
        small = self.attention[0](self.down[1](self.shrink[0](large), time))
        x = self.attention[1](self.deepest[0](self.shrink[1](small), time))
        x = functional.interpolate(self.deepest[1](x, time), scale_factor=2.0)
        x = self.attention[2](self.up[0](torch.cat([x, small], 1), time))
        x = self.enlarged(functional.interpolate(x, scale_factor=2.0))
        noise: Tensor = self.last(self.up[1](torch.cat([x, large], 1), time))
        return noise


def build() -> nn.Module:
    torch.manual_seed(0)
    return Denoiser().eval()
