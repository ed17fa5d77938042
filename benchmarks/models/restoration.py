"""Denoising, as Restormer: attention between channels, and depthwise convolutions with gates."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 48
HEADS = 2
BLOCKS = 3


class Norm(nn.Module):
    """A norm of the channels of each pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return y


def filtered(inputs: int, outputs: int) -> nn.Sequential:
    """Mixes channels, then neighbouring pixels."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.Conv2d(outputs, outputs, 3, padding=1, groups=outputs, bias=False),
    )


class Channels(nn.Module):
    """Attention between channels: their scores are sums over pixels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.parts = filtered(width, 3 * width)
        self.scale = nn.Parameter(torch.ones(HEADS, 1, 1))
        self.merge = nn.Conv2d(width, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.parts(x).unflatten(1, (3, HEADS, -1)).flatten(4)
        query, key, value = parts.unbind(1)
        query, key = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)
        y = (query @ key.transpose(-1, -2) * self.scale).softmax(-1) @ value
        merged: Tensor = self.merge(y.reshape(x.shape))
        return merged


class Gates(nn.Module):
    """Half of the channels opens gates for the other half."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.parts = filtered(width, 4 * width)
        self.merge = nn.Conv2d(2 * width, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.parts(x).chunk(2, 1)
        merged: Tensor = self.merge(functional.gelu(gate) * value)
        return merged


class Residual(nn.Module):
    """The sum of the input and what the parts make of it."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.parts(x)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    parts: list[nn.Module] = [nn.Conv2d(3, WIDTH, 3, padding=1)]
    for _ in range(BLOCKS):
        parts.append(Residual(Norm(WIDTH), Channels(WIDTH)))
        parts.append(Residual(Norm(WIDTH), Gates(WIDTH)))
    return Residual(*parts, nn.Conv2d(WIDTH, 3, 3, padding=1)).eval()
