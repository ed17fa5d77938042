"""ConvNeXt V2 with the sizes of "nano": channels compete by the sizes of their responses."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (80, 160, 320, 640)
DEPTHS = (2, 2, 8, 2)
CLASSES = 1000


class ChannelNorm(nn.Module):
    """A norm over the channels of [batch, channels, height, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        spread = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(spread + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ResponseNorm(nn.Module):
    """Each channel's size over the whole picture, compared to that of the other channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 1, 1, width))
        self.bias = nn.Parameter(0.1 * torch.randn(1, 1, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        size = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        size = size / (size.mean(-1, keepdim=True) + 1e-6)
        result: Tensor = self.weight * (x * size) + self.bias + x
        return result


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.responses = ResponseNorm(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.down(self.responses(functional.gelu(self.up(y))))
        result: Tensor = x + y.permute(0, 3, 1, 2)
        return result


class Responses(nn.Module):
    """float32[batch, 3, 160, 160] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        starts = [nn.Sequential(nn.Conv2d(3, WIDTHS[0], 4, 4), ChannelNorm(WIDTHS[0]))]
        for a, b in itertools.pairwise(WIDTHS):
            starts.append(nn.Sequential(ChannelNorm(a), nn.Conv2d(a, b, 2, 2)))
        self.stages = nn.Sequential(
            *(
                nn.Sequential(start, *(Block(width) for _ in range(depth)))
                for start, width, depth in zip(starts, WIDTHS, DEPTHS, strict=True)
            )
        )
        self.norm = nn.LayerNorm(WIDTHS[-1], eps=1e-6)
        self.head = nn.Linear(WIDTHS[-1], CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        result: Tensor = self.head(self.norm(self.stages(pictures).mean((-2, -1))))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Responses().eval()
