"""The decoder of an autoencoder, as Stable Diffusion has one: latents of 16 x 16 to pictures."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = (128, 128, 64, 32)
GROUPS = 16


class Block(nn.Module):
    """Two convolutions, each behind a norm of groups and SiLU, and a residual."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.GroupNorm(GROUPS, inputs),
            nn.SiLU(),
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(GROUPS, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.shortcut(x) + self.layers(x)
        return y


class Attention(nn.Module):
    """Attention between all pixels, with one head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.query, self.key, self.value, self.out = (
            nn.Conv2d(channels, channels, 1) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        q, k, v = (f(y).flatten(2).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        result: Tensor = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    channels = CHANNELS[0]
    parts: list[nn.Module] = [nn.Conv2d(4, channels, 3, padding=1)]
    parts += [Block(channels, channels), Attention(channels), Block(channels, channels)]
    for outputs in CHANNELS[1:]:
        parts += [nn.Upsample(scale_factor=2), nn.Conv2d(channels, channels, 3, padding=1)]
        parts += [Block(channels, outputs), Block(outputs, outputs)]
        channels = outputs
    head = [nn.GroupNorm(GROUPS, channels), nn.SiLU(), nn.Conv2d(channels, 3, 3, padding=1)]
    return nn.Sequential(*parts, *head).eval()
