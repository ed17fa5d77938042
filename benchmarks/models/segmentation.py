"""A network that gives each pixel of a picture a class, as DeepLab does."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (32, 64, 128)
PART = 64
DILATIONS = (6, 12)
CLASSES = 21


def convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1
) -> nn.Sequential:
    padding = kernel // 2 * dilation
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class Segmentation(nn.Module):
    """float32[batch, 3, height, width] to float32[batch, 21, height, width]; multiples of 8."""

    def __init__(self) -> None:
        super().__init__()
        inputs = (3, *WIDTHS)
        stages = [convolution(inputs[i], WIDTHS[i], 3, 2) for i in range(len(WIDTHS))]
        width = WIDTHS[-1]
        self.body = nn.Sequential(*stages, convolution(width, width, 3))
        self.parts = nn.ModuleList(
            [convolution(width, PART, 1)]
            + [convolution(width, PART, 3, dilation=dilation) for dilation in DILATIONS]
        )
        self.whole = convolution(width, PART, 1)
        self.merge = convolution((len(self.parts) + 1) * PART, width, 1)
        self.head = nn.Sequential(convolution(width, PART, 3), nn.Conv2d(PART, CLASSES, 1))

    def forward(self, images: Tensor) -> Tensor:
        x = self.body(images)
        mean = self.whole(x.mean((2, 3), keepdim=True))
        parts = [part(x) for part in self.parts]
        parts.append(functional.interpolate(mean, size=x.shape[2:], mode="bilinear"))
        y = self.head(self.merge(torch.cat(parts, 1)))
        return functional.interpolate(y, size=images.shape[2:], mode="bilinear")


def build() -> nn.Module:
    torch.manual_seed(0)
    return Segmentation().eval()
