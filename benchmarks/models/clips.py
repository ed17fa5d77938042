"""Film, as X3D-S: depthwise volumes between layers of points, every other block squeezed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTHS = (24, 48, 96, 192)
INNER = (54, 108, 216, 432)
SQUEEZED = (8, 8, 16, 32)
DEPTHS = (3, 5, 11, 7)
CLASSES = 400


class Swish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


class Squeeze(nn.Module):
    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(width, squeezed, 1), nn.ReLU(), nn.Conv3d(squeezed, width, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x * self.layers(x.mean((2, 3, 4), keepdim=True))
        return result


class Block(nn.Module):
    def __init__(self, inputs: int, inner: int, outputs: int, squeezed: int, stride: int) -> None:
        super().__init__()
        steps = (1, stride, stride)
        self.layers = nn.Sequential(
            nn.Conv3d(inputs, inner, 1, bias=False),
            nn.BatchNorm3d(inner),
            nn.ReLU(),
            nn.Conv3d(inner, inner, 3, steps, 1, groups=inner, bias=False),
            nn.BatchNorm3d(inner),
            Squeeze(inner, squeezed) if squeezed else nn.Identity(),
            Swish(),
            nn.Conv3d(inner, outputs, 1, bias=False),
            nn.BatchNorm3d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv3d(inputs, outputs, 1, steps, bias=False), nn.BatchNorm3d(outputs)
            )
        elif stride > 1:
            self.shortcut = nn.Conv3d(inputs, outputs, 1, steps, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.shortcut(x) + self.layers(x))


class Clips(nn.Module):
    """float32[batch, 3, 8, 112, 112] to float32[batch, 400]"""

    def __init__(self) -> None:
        super().__init__()
        width = WIDTHS[0]
        self.stem = nn.Sequential(
            nn.Conv3d(3, width, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
            nn.Conv3d(width, width, (5, 1, 1), padding=(2, 0, 0), groups=width, bias=False),
            nn.BatchNorm3d(width),
            nn.ReLU(),
        )
        blocks = []
        for outputs, inner, squeezed, depth in zip(WIDTHS, INNER, SQUEEZED, DEPTHS, strict=True):
            for i in range(depth):
                odd = i % 2
                blocks.append(Block(width, inner, outputs, 0 if odd else squeezed, 1 if i else 2))
                width = outputs
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.Sequential(
            nn.Conv3d(width, INNER[-1], 1, bias=False),
            nn.BatchNorm3d(INNER[-1]),
            nn.ReLU(),
            nn.AdaptiveAvgPool3d(1),
            nn.Conv3d(INNER[-1], 2048, 1, bias=False),
            nn.BatchNorm3d(2048),
            nn.ReLU(),
        )
        self.head = nn.Linear(2048, CLASSES)

    def forward(self, film: Tensor) -> Tensor:
        x = self.pool(self.blocks(self.stem(film)))
        result: Tensor = self.head(x.permute(0, 2, 3, 4, 1)).flatten(1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Clips()
    for layer in model.modules():
        if isinstance(layer, nn.Conv3d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        elif isinstance(layer, nn.BatchNorm3d):
            nn.init.normal_(layer.bias, std=0.1)
            layer.momentum = 1.0
    with torch.no_grad():
        model(2 * torch.rand(8, 3, 8, 112, 112) - 1)
    return model.eval()
