"""ConvNeXt with the sizes of "atto": depthwise 7x7 convolutions between linear layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (40, 80, 160, 320)
DEPTHS = (2, 2, 6, 2)
CLASSES = 1000


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of [batch, channels, height, width]."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """A depthwise convolution, then a feed-forward network over the channels, and a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(functional.gelu(self.up(y)))
        x = x + y.permute(0, 3, 1, 2)
        return x


def build() -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = [
        nn.Conv2d(3, WIDTHS[0], 4, stride=4),
        ChannelNorm(WIDTHS[0], eps=1e-6),
    ]
    for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
        if stage:
            before = WIDTHS[stage - 1]
            layers += [ChannelNorm(before, eps=1e-6), nn.Conv2d(before, width, 2, stride=2)]
        layers += [Block(width) for _ in range(depth)]
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.LayerNorm(WIDTHS[-1], eps=1e-6),
        nn.Linear(WIDTHS[-1], CLASSES),
    ).eval()
