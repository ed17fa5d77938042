"""MobileNetV3-Large for pictures of 224 x 224."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 1000

# Kernel, width within, width of the output, squeeze-excite, activation, stride of each block.
BLOCKS: tuple[tuple[int, int, int, bool, type[nn.Module], int], ...] = (
    (3, 16, 16, False, nn.ReLU, 1),
    (3, 64, 24, False, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2),
    (5, 120, 40, True, nn.ReLU, 1),
    (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)


def convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """A convolution that keeps the size (but for the stride), and its normalisation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class SqueezeExcite(nn.Module):
    """Scales each channel by what the mean of the picture says."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        within = (channels // 4 + 4) // 8 * 8
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, within, 1),
            nn.ReLU(),
            nn.Conv2d(within, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        scaled: Tensor = x * self.gate(x)
        return scaled


class Block(nn.Module):
    """A wider space, a convolution of each channel, and back; a residual where sizes allow."""

    def __init__(
        self,
        inputs: int,
        kernel: int,
        within: int,
        outputs: int,
        excite: bool,
        activation: type[nn.Module],
        stride: int,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if within != inputs:
            layers += [convolution(inputs, within, 1), activation()]
        layers += [convolution(within, within, kernel, stride, groups=within), activation()]
        if excite:
            layers.append(SqueezeExcite(within))
        self.layers = nn.Sequential(*layers, convolution(within, outputs, 1))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


def build() -> nn.Module:
    torch.manual_seed(0)
    blocks: list[nn.Module] = []
    inputs = 16
    for kernel, within, outputs, excite, activation, stride in BLOCKS:
        blocks.append(Block(inputs, kernel, within, outputs, excite, activation, stride))
        inputs = outputs
    return nn.Sequential(
        convolution(3, 16, 3, stride=2),
        nn.Hardswish(),
        *blocks,
        convolution(inputs, 960, 1),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(960, 1280),
        nn.Hardswish(),
        nn.Linear(1280, CLASSES),
    ).eval()
