"""Poses, as HRNet finds them: three resolutions side by side, which exchange what they found."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models.mobilenet import convolution
from benchmarks.models.resnet import Block

WIDTHS = (32, 64, 128)
ROUNDS = 2
JOINTS = 17


class Exchange(nn.Module):
    """Each resolution becomes the sum of all, enlarged or shrunk."""

    def __init__(self) -> None:
        super().__init__()
        ways: list[nn.Module] = []
        for to, outputs in enumerate(WIDTHS):
            for of, inputs in enumerate(WIDTHS):
                steps: list[nn.Module] = []
                if of > to:
                    steps = [
                        convolution(inputs, outputs, 1),
                        nn.Upsample(scale_factor=2 ** (of - to)),
                    ]
                for i in range(of, to):
                    last = i + 1 == to
                    steps.append(convolution(inputs, outputs if last else inputs, 3, 2))
                    steps += [] if last else [nn.ReLU()]
                ways.append(nn.Sequential(*steps))
        self.ways = nn.ModuleList(ways)

    def forward(self, parts: list[Tensor]) -> list[Tensor]:
        count = len(WIDTHS)
        results = []
        for to in range(count):
            total = self.ways[to * count](parts[0])
            for of in range(1, count):
                total = total + self.ways[to * count + of](parts[of])
            results.append(functional.relu(total))
        return results


class Resolutions(nn.Module):
    """float32[batch, 3, 192, 160] to float32[batch, 17, 48, 40]"""

    def __init__(self) -> None:
        super().__init__()
        first = WIDTHS[0]
        self.start = nn.Sequential(
            convolution(3, first, 3, 2), nn.ReLU(), convolution(first, first, 3, 2), nn.ReLU()
        )
        self.shrink = nn.ModuleList(
            nn.Sequential(convolution(a, b, 3, 2), nn.ReLU()) for a, b in itertools.pairwise(WIDTHS)
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(Block(width, width, 1), Block(width, width, 1))
            for _ in range(ROUNDS)
            for width in WIDTHS
        )
        self.exchanges = nn.ModuleList(Exchange() for _ in range(ROUNDS))
        self.head = nn.Conv2d(first, JOINTS, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        parts = [self.start(pictures)]
        for shrink in self.shrink:
            parts.append(shrink(parts[-1]))
        for i, exchange in enumerate(self.exchanges):
            blocks = self.blocks[i * len(WIDTHS) : (i + 1) * len(WIDTHS)]
            parts = exchange([block(x) for block, x in zip(blocks, parts, strict=True)])
        joints: Tensor = self.head(parts[0])
        return joints


def build() -> nn.Module:
    torch.manual_seed(0)
    return Resolutions().eval()
