"""What stands out in a picture, as U2-Net (small): each stage of the U is a U itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 64
MIDDLE = 16
DEPTHS = (7, 6, 5, 4)


def layer(inputs: int, outputs: int, dilation: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=dilation, dilation=dilation),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def like(x: Tensor, other: Tensor) -> Tensor:
    return functional.interpolate(x, size=other.shape[2:], mode="bilinear", align_corners=False)


def half(x: Tensor) -> Tensor:
    return functional.max_pool2d(x, 2, stride=2, ceil_mode=True)


class Block(nn.Module):
    """A small U: of images that become smaller or, if `flat`, of wider and wider dilations."""

    def __init__(self, inputs: int, depth: int, flat: bool = False) -> None:
        super().__init__()
        self.flat = flat
        steps = [2**i if flat else 1 for i in range(depth - 1)]
        self.start = layer(inputs, WIDTH)
        self.down = nn.ModuleList(
            layer(MIDDLE if i else WIDTH, MIDDLE, step) for i, step in enumerate(steps)
        )
        self.bottom = layer(MIDDLE, MIDDLE, 2 ** (depth - 1) if flat else 2)
        self.up = nn.ModuleList(
            layer(2 * MIDDLE, MIDDLE if i else WIDTH, step) for i, step in enumerate(steps)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.start(x)
        y, images = x, []
        for i, down in enumerate(self.down):
            y = down(half(y) if i and not self.flat else y)
            images.append(y)
        y = self.bottom(y)
        for up, image in zip(reversed(self.up), reversed(images), strict=True):
            y = up(torch.cat([y if self.flat else like(y, image), image], 1))
        result: Tensor = y + x
        return result


class Salient(nn.Module):
    """float32[batch, 3, 100, 100] to float32[batch, 7, 100, 100]: the result, and each stage's"""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(Block(WIDTH if i else 3, n) for i, n in enumerate(DEPTHS))
        self.down.extend(Block(WIDTH, 4, flat=True) for _ in range(2))
        self.up = nn.ModuleList(Block(2 * WIDTH, n) for n in DEPTHS)
        self.up.append(Block(2 * WIDTH, 4, flat=True))
        self.sides = nn.ModuleList(nn.Conv2d(WIDTH, 1, 3, padding=1) for _ in self.down)
        self.end = nn.Conv2d(len(self.down), 1, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        x, images = pictures, []
        for i, down in enumerate(self.down):
            x = down(half(x) if i else x)
            images.append(x)
        found = [x]
        for up, image in zip(reversed(self.up), reversed(images[:-1]), strict=True):
            x = up(torch.cat([like(x, image), image], 1))
            found.insert(0, x)
        sides = [side(x) for side, x in zip(self.sides, found, strict=True)]
        sides = [sides[0], *(like(x, sides[0]) for x in sides[1:])]
        fused = self.end(torch.cat(sides, 1))
        return torch.cat([fused, *sides], 1).sigmoid()


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Salient()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 0.5
        elif isinstance(part, nn.Conv2d) and part.out_channels > 1:
            nn.init.kaiming_normal_(part.weight)
    with torch.no_grad():
        model.train()(torch.rand(2, 3, 100, 100) * 2 - 1)
    return model.eval()
