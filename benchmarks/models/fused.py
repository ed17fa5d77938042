"""What is where in a picture, as DeepLabV3+: EfficientNetV2-S, then filters with holes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

# Fused or not, times wider inside, stride, channels, blocks.
STAGES = (
    (True, 1, 1, 24, 2),
    (True, 4, 2, 48, 4),
    (True, 4, 2, 64, 4),
    (False, 4, 2, 128, 6),
    (False, 6, 1, 160, 9),
)
RATES = (6, 12, 18)
WIDTH = 256
CLASSES = 21


def layer(a: int, b: int, size: int, stride: int = 1, groups: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(a, b, size, stride, size // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(b, eps=1e-3)


def separable(inputs: int, outputs: int, rate: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, 1, rate, rate, groups=inputs, bias=False),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class Squeeze(nn.Module):
    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, squeezed, 1), nn.Conv2d(squeezed, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = functional.silu(self.down(functional.adaptive_avg_pool2d(x, 1)))
        x = x * self.up(scale).sigmoid()
        return x


class Block(nn.Module):
    """Fused, a full convolution widens; else a layer of points, and a depthwise one follows."""

    def __init__(self, fused: bool, times: int, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.residual, inner = stride == 1 and inputs == outputs, times * inputs
        parts: tuple[nn.Module, ...]
        if times == 1:
            parts = (*layer(inputs, outputs, 3, stride), nn.SiLU())
        elif fused:
            parts = (*layer(inputs, inner, 3, stride), nn.SiLU(), *layer(inner, outputs, 1))
        else:
            parts = (
                *layer(inputs, inner, 1),
                nn.SiLU(),
                *layer(inner, inner, 3, stride, inner),
                nn.SiLU(),
                Squeeze(inner, inputs // 4),
                *layer(inner, outputs, 1),
            )
        self.layers = nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


class Pyramid(nn.Module):
    """Filters of one point, of points further and further apart, and the mean of all."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.near = nn.Sequential(*layer(inputs, WIDTH, 1), nn.ReLU())
        self.far = nn.ModuleList(separable(inputs, WIDTH, rate) for rate in RATES)
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layer(inputs, WIDTH, 1), nn.ReLU())
        self.all = nn.Sequential(*layer((len(RATES) + 2) * WIDTH, WIDTH, 1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        mean = functional.interpolate(self.mean(x), size=x.shape[-2:], mode="bilinear")
        parts = [self.near(x), *(far(x) for far in self.far), mean]
        result: Tensor = self.all(torch.cat(parts, 1))
        return result


class Fused(nn.Module):
    """float32[batch, 3, 160, 160] to float32[batch, 21, 160, 160]"""

    def __init__(self) -> None:
        super().__init__()
        width = 24
        self.stem = nn.Sequential(*layer(3, width, 3, 2), nn.SiLU())
        self.stages = nn.ModuleList()
        for fused, times, stride, outputs, count in STAGES:
            blocks = [Block(fused, times, width, outputs, stride)]
            blocks += [Block(fused, times, outputs, outputs, 1) for _ in range(count - 1)]
            self.stages.append(nn.Sequential(*blocks))
            width = outputs
        self.pyramid = nn.Sequential(Pyramid(width), separable(WIDTH, WIDTH))
        self.details = nn.Sequential(*layer(STAGES[1][3], 48, 1), nn.ReLU())
        self.head = nn.Sequential(separable(WIDTH + 48, WIDTH), nn.Conv2d(WIDTH, CLASSES, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        x, seen = self.stem(pictures), []
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        x = self.pyramid(x)
        x = functional.interpolate(x, scale_factor=4, mode="bilinear", align_corners=True)
        x = self.head(torch.cat((x, self.details(seen[1])), 1))
        return functional.interpolate(x, scale_factor=4, mode="bilinear", align_corners=True)


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Fused()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        elif isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.bias, std=0.1)
            part.momentum = 1.0
    with torch.no_grad():
        model(2 * torch.rand(4, 3, 160, 160) - 1)
    return model.eval()
