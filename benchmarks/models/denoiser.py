"""What denoises images, as DiT: a transformer whose norms are scaled by what the step tells."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 256
HEADS = 4
PATCH = 2
SIDE = 32
CHANNELS = 4
LAYERS = 4


class Block(nn.Module):
    """Attention and two layers; six vectors of the step shift, scale and weigh them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, elementwise_affine=False, eps=1e-6)
        self.inputs, self.outputs = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.of_step = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        shift, scale, weight, shift2, scale2, weight2 = self.of_step(step)[:, None].chunk(6, -1)
        y = self.norm(x) * (1 + scale) + shift
        parts = self.inputs(y).unflatten(-1, (3, HEADS, WIDTH // HEADS)).transpose(1, 3)
        query, key, value = parts.unbind(2)
        y = functional.scaled_dot_product_attention(query, key, value)
        x = x + weight * self.outputs(y.transpose(1, 2).flatten(2))
        y = self.norm(x) * (1 + scale2) + shift2
        result: Tensor = x + weight2 * self.layers(y)
        return result


class Denoiser(nn.Module):
    """float32[batch, 4, 32, 32], float32[batch] and int64[batch] to float32[batch, 4, 32, 32]"""

    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        count = (SIDE // PATCH) ** 2
        self.patches = nn.Conv2d(CHANNELS, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.randn(count, WIDTH) * 0.02)
        self.steps = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.classes = nn.Embedding(1000, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, elementwise_affine=False, eps=1e-6)
        self.of_step = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 2 * WIDTH))
        self.head = nn.Linear(WIDTH, PATCH * PATCH * CHANNELS)
        exponents = torch.arange(WIDTH // 2) / (WIDTH // 2)
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * exponents))

    def forward(self, images: Tensor, steps: Tensor, classes: Tensor) -> Tensor:
        angles = steps[:, None] * self.frequencies
        step = self.steps(torch.cat([angles.cos(), angles.sin()], -1)) + self.classes(classes)
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x, step)
        shift, scale = self.of_step(step)[:, None].chunk(2, -1)
        x = self.head(self.norm(x) * (1 + scale) + shift)
        count = SIDE // PATCH
        x = x.view(-1, count, count, PATCH, PATCH, CHANNELS)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(-1, CHANNELS, SIDE, SIDE)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Denoiser().eval()
