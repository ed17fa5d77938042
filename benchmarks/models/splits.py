"""Blocks of ResNeSt and of Res2Net in turn: channels in parts, weighed or one after the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

RADIX = 2
SCALE = 4
WIDTHS = (64, 128, 256, 512)
CLASSES = 1000


def layer(inputs: int, outputs: int, kernel: int, step: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, step, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class SplitAttention(nn.Module):
    """Two convolutions of two halves, added by weights that the picture's mean decides on."""

    def __init__(self, width: int) -> None:
        super().__init__()
        narrow = max(width * RADIX // 4, 32)
        self.convolution = layer(width, width * RADIX, 3, groups=RADIX)
        self.narrow = nn.Sequential(nn.Conv2d(width, narrow, 1), nn.BatchNorm2d(narrow))
        self.weights = nn.Conv2d(narrow, width * RADIX, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, width = x.shape[:2]
        x = functional.relu(self.convolution(x))
        parts = torch.split(x, width, dim=1)
        mean = functional.adaptive_avg_pool2d(sum(parts[1:], parts[0]), 1)
        weights = self.weights(functional.relu(self.narrow(mean)))
        weights = weights.view(batch, 1, RADIX, -1).transpose(1, 2).softmax(1)
        weighed = weights.reshape(batch, -1, 1, 1).split(width, dim=1)
        products = [a * b for a, b in zip(weighed, parts, strict=True)]
        result: Tensor = sum(products[1:], products[0])
        return result


class Hierarchy(nn.Module):
    """Each part but the last has a convolution, which sees the results of the ones before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layer(width, width, 3) for _ in range(SCALE - 1))

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.chunk(x, SCALE, 1)
        found: list[Tensor] = []
        for part, convolution in zip(parts, self.layers):
            y = part if not found else found[-1] + part
            found.append(functional.relu(convolution(y)))
        return torch.cat([*found, parts[-1]], 1)


class Block(nn.Module):
    def __init__(self, inputs: int, width: int, inner: int, middle: nn.Module, step: int) -> None:
        super().__init__()
        self.start, self.middle = layer(inputs, inner, 1), middle
        self.pool = nn.AvgPool2d(3, step, padding=1) if step > 1 else nn.Identity()
        self.end = layer(inner, 4 * width, 1)
        self.short: nn.Module = nn.Identity()
        if inputs != 4 * width:
            means = nn.AvgPool2d(step, step, ceil_mode=True, count_include_pad=False)
            self.short = nn.Sequential(means, layer(inputs, 4 * width, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.end(self.pool(self.middle(functional.relu(self.start(x)))))
        return functional.relu(y + self.short(x))


class Splits(nn.Module):
    """float32[batch, 3, 160, 160] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        stem = [layer(3, 32, 3, 2), nn.ReLU(), layer(32, 32, 3), nn.ReLU(), layer(32, 64, 3)]
        self.stem = nn.Sequential(*stem, nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for i, width in enumerate(WIDTHS):
            blocks.append(Block(inputs, width, width, SplitAttention(width), 2 if i else 1))
            inputs, part = 4 * width, width * 26 // 64
            blocks.append(Block(inputs, width, SCALE * part, Hierarchy(part), 1))
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.blocks(self.stem(pictures))
        result: Tensor = self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Splits()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
        elif isinstance(part, nn.BatchNorm2d):
            part.momentum = None
    with torch.no_grad():
        model.train()(torch.rand(8, 3, 160, 160) * 2 - 1)
    return model.eval()
