"""Portraits from noise, as StyleGAN2: each sample has filters of its own, scaled by its style."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

STYLE = 512
WIDTHS = (512, 512, 256, 128, 64)


class Linear(nn.Module):
    def __init__(self, inputs: int, outputs: int, bias: float = 0.0, rate: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / rate)
        self.bias = nn.Parameter(torch.full((outputs,), bias))
        self.scale, self.rate = rate / math.sqrt(inputs), rate

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight * self.scale, self.bias * self.rate)


class Blur(nn.Module):
    """A smooth filter for each channel, after zeros around."""

    kernel: Tensor

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.around = (before, after, before, after)
        row = torch.tensor([1.0, 3.0, 3.0, 1.0]) / 4
        self.register_buffer("kernel", torch.outer(row, row)[None, None])

    def forward(self, x: Tensor) -> Tensor:
        kernel = self.kernel.expand(x.shape[1], -1, -1, -1)
        return functional.conv2d(functional.pad(x, self.around), kernel, groups=x.shape[1])


class Modulated(nn.Module):
    def __init__(self, inputs: int, outputs: int, size: int, *, grow: bool, normed: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, outputs, inputs, size, size))
        self.style = Linear(STYLE, inputs, bias=1.0)
        self.scale, self.normed = 1 / math.sqrt(inputs * size * size), normed
        self.blur = Blur(1, 1) if grow else None

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        batch, inputs, height, width = x.shape
        outputs, size = self.weight.shape[1], self.weight.shape[-1]
        weight = self.scale * self.weight * self.style(style).view(batch, 1, inputs, 1, 1)
        if self.normed:
            weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        x = x.reshape(1, batch * inputs, height, width)
        if self.blur is None:
            weight = weight.view(batch * outputs, inputs, size, size)
            y = functional.conv2d(x, weight, padding=size // 2, groups=batch)
            return y.view(batch, outputs, height, width)
        weight = weight.transpose(1, 2).reshape(batch * inputs, outputs, size, size)
        y = functional.conv_transpose2d(x, weight, stride=2, groups=batch)
        result: Tensor = self.blur(y.view(batch, outputs, 2 * height + 1, 2 * width + 1))
        return result


class Layer(nn.Module):
    noise: Tensor

    def __init__(self, inputs: int, outputs: int, side: int, *, grow: bool = False) -> None:
        super().__init__()
        self.filters = Modulated(inputs, outputs, 3, grow=grow, normed=True)
        self.bias = nn.Parameter(0.1 * torch.randn(1, outputs, 1, 1))
        self.strength = nn.Parameter(torch.full((1,), 0.1))
        self.register_buffer("noise", torch.randn(1, 1, side, side))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        x = self.filters(x, style) + self.strength * self.noise
        return functional.leaky_relu(x + self.bias, 0.2) * math.sqrt(2)


class Colours(nn.Module):
    """The picture of half the size, enlarged, and what this size adds to it."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.filters = Modulated(inputs, 3, 1, grow=False, normed=False)
        self.bias, self.blur = nn.Parameter(torch.zeros(1, 3, 1, 1)), Blur(2, 1)

    def forward(self, x: Tensor, style: Tensor, picture: Tensor | None = None) -> Tensor:
        y: Tensor = self.filters(x, style) + self.bias
        if picture is None:
            return y
        batch, channels, height, width = picture.shape
        picture = picture.view(batch, channels, height, 1, width, 1)
        picture = functional.pad(picture, (0, 1, 0, 0, 0, 1))
        y = y + self.blur(picture.view(batch, channels, 2 * height, 2 * width))
        return y


class Portraits(nn.Module):
    """float32[batch, 512] to float32[batch, 3, 64, 64]"""

    def __init__(self) -> None:
        super().__init__()
        self.mapping = nn.ModuleList(Linear(STYLE, STYLE, rate=0.01) for _ in range(8))
        self.start = nn.Parameter(torch.randn(1, WIDTHS[0], 4, 4))
        self.first, self.grow = Layer(WIDTHS[0], WIDTHS[0], 4), nn.ModuleList()
        self.layers, self.colours = nn.ModuleList(), nn.ModuleList([Colours(WIDTHS[0])])
        for (a, b), side in zip(itertools.pairwise(WIDTHS), (8, 16, 32, 64), strict=True):
            self.grow.append(Layer(a, b, side, grow=True))
            self.layers.append(Layer(b, b, side))
            self.colours.append(Colours(b))

    def forward(self, noise: Tensor) -> Tensor:
        style = noise * torch.rsqrt(noise.pow(2).mean(1, keepdim=True) + 1e-8)
        for layer in self.mapping:
            style = functional.leaky_relu(layer(style), 0.2) * math.sqrt(2)
        x = self.first(self.start.repeat(noise.shape[0], 1, 1, 1), style)
        picture: Tensor = self.colours[0](x, style)
        for grow, layer, colours in zip(self.grow, self.layers, self.colours[1:], strict=True):
            x = layer(grow(x, style), style)
            picture = colours(x, style, picture)
        return picture


def build() -> nn.Module:
    torch.manual_seed(0)
    return Portraits().eval()
