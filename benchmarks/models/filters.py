"""A model of genes, as HyenaDNA: gates and filters as long as the text, made by a small network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 256
TOKENS = 256
WORDS = 12
BANDS = 2
INNER = 64
LAYERS = 3


def convolved(x: Tensor, filters: Tensor, bias: Tensor) -> Tensor:
    """Each channel with its own causal filter, by way of frequencies."""
    count = x.shape[-1]
    of_filters = torch.fft.rfft(filters, n=2 * count) / (2 * count)
    of_x = torch.fft.rfft(x, n=2 * count)
    y = torch.fft.irfft(of_x * of_filters, n=2 * count, norm="forward")[..., :count]
    result: Tensor = y + x * bias.unsqueeze(-1)
    return result


class Sine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.frequency = nn.Parameter(torch.full((1, INNER), 10.0))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.frequency * x)


class Filters(nn.Module):
    """The filters' values from their places, which fade at a pace of each channel."""

    places: Tensor
    times: Tensor
    paces: Tensor

    def __init__(self) -> None:
        super().__init__()
        sine = Sine()
        self.layers = nn.Sequential(
            nn.Linear(1 + 2 * BANDS, INNER),
            sine,
            nn.Linear(INNER, INNER),
            sine,
            nn.Linear(INNER, INNER),
            sine,
            nn.Linear(INNER, WIDTH, bias=False),
        )
        self.bias = nn.Parameter(torch.randn(WIDTH))
        times = torch.linspace(0, 1, TOKENS)[None, :, None]
        angles = 2 * math.pi * torch.arange(TOKENS)[None, :, None] / TOKENS
        waves = torch.exp(-1j * torch.linspace(1e-4, BANDS - 1, BANDS) * angles)
        self.register_buffer("places", torch.cat([times, waves.real, waves.imag], dim=-1))
        self.register_buffer("times", times)
        slow, fast = math.log(0.01) / 1.5, math.log(0.01) / 0.3
        self.register_buffer("paces", torch.linspace(slow, fast, WIDTH)[None, None])

    def forward(self) -> Tensor:
        filters = self.layers(self.places) * torch.exp(-self.times * self.paces.abs())
        result: Tensor = filters[0].transpose(0, 1)
        return result


class Operator(nn.Module):
    """Of second order: a gate, long filters and another gate."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs, self.outputs = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.short = nn.Conv1d(3 * WIDTH, 3 * WIDTH, 3, padding=2, groups=3 * WIDTH)
        self.filters = Filters()

    def forward(self, x: Tensor) -> Tensor:
        y = self.short(self.inputs(x).transpose(1, 2))[..., :TOKENS]
        last, first, value = y.split(WIDTH, dim=1)
        y = convolved(value * first, self.filters(), self.filters.bias) * last
        result: Tensor = self.outputs(y.transpose(1, 2))
        return result


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.operator = Operator()
        self.layers = nn.ModuleList((nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.operator(self.norms[0](x))
        y = functional.gelu(self.layers[0](self.norms[1](x)), approximate="tanh")
        result: Tensor = x + self.layers[1](y)
        return result


class Genes(nn.Module):
    """int64[batch, 256] to float32[batch, 256, 12]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        result: Tensor = self.head(self.norm(self.layers(self.words(words))))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Genes().eval()
