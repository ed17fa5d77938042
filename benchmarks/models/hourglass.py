"""Centres of things, as CenterNet: two stacked hourglasses, which go down to few points and up."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 256
DEPTH = 4
STACKS = 2
HEAD = 64
CLASSES = 80


class Residual(nn.Module):
    """Norms and activations stand before the convolutions."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        inner = outputs // 2
        parts: list[nn.Module] = []
        for width, size in ((inputs, 1), (inner, 3)):
            parts += [nn.BatchNorm2d(width), nn.ReLU()]
            parts += [nn.Conv2d(width, inner, size, padding=size // 2)]
        self.layers = nn.Sequential(*parts, nn.BatchNorm2d(inner), nn.ReLU())
        self.end = nn.Conv2d(inner, outputs, 1)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.end(self.layers(x)) + self.shortcut(x)
        return result


class Hourglass(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.beside, self.down, self.up = (Residual(WIDTH, WIDTH) for _ in range(3))
        self.inner = Hourglass(depth - 1) if depth > 1 else Residual(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        beside: Tensor = self.beside(x)
        y = self.up(self.inner(self.down(functional.max_pool2d(x, 2))))
        return beside + functional.interpolate(y, size=beside.shape[-2:], mode="nearest")


def layer(inputs: int, outputs: int, size: int = 1, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)
    )


def head(outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(WIDTH, HEAD, 3, padding=1), nn.ReLU(), nn.Conv2d(HEAD, outputs, 1)
    )


class Centres(nn.Module):
    """float32[batch, 3, 128, 96] to float32[batch, 84, 32, 24]: classes, sizes and offsets"""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Sequential(
            layer(3, 64, 7, 2),
            nn.ReLU(),
            Residual(64, 128),
            nn.MaxPool2d(2),
            Residual(128, 128),
            Residual(128, WIDTH),
        )
        self.hourglasses = nn.ModuleList(Hourglass(DEPTH) for _ in range(STACKS))
        self.ends = nn.ModuleList(
            nn.Sequential(Residual(WIDTH, WIDTH), layer(WIDTH, WIDTH), nn.ReLU())
            for _ in range(STACKS)
        )
        self.before = nn.ModuleList(layer(WIDTH, WIDTH) for _ in range(STACKS - 1))
        self.after = nn.ModuleList(layer(WIDTH, WIDTH) for _ in range(STACKS - 1))
        self.classes, self.sizes, self.offsets = head(CLASSES), head(2), head(2)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.start(pictures)
        y: Tensor = self.ends[0](self.hourglasses[0](x))
        for i in range(1, STACKS):
            x = torch.relu(self.before[i - 1](x) + self.after[i - 1](y))
            y = self.ends[i](self.hourglasses[i](x))
        classes = self.classes(y).sigmoid().clamp(1e-4, 1 - 1e-4)
        return torch.cat((classes, self.sizes(y), self.offsets(y)), 1)


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Centres()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        elif isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.bias, std=0.1)
            part.momentum = 1.0
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, Residual):
                part.end.weight.mul_(0.25)
        model(2 * torch.rand(4, 3, 128, 96) - 1)
    return model.eval()
