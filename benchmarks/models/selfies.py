"""Faces in a picture, as BlazeFace: depthwise filters of 5x5, residuals with more channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, step: int = 1) -> None:
        super().__init__()
        self.more, self.step = outputs - inputs, step
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, inputs, 5, step, 0 if step > 1 else 2, groups=inputs),
            nn.Conv2d(inputs, outputs, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if self.step > 1:
            x = functional.pad(x, (1, 2, 1, 2))
            y = functional.max_pool2d(y, 2)
        if self.more:
            y = functional.pad(y, (0, 0, 0, 0, 0, self.more))
        result: Tensor = functional.relu(self.layers(x) + y)
        return result


class Selfies(nn.Module):
    """float32[batch, 3, 128, 128] to float32[batch, 896, 17]: boxes, points and scores"""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Sequential(
            nn.Conv2d(3, 24, 5, 2, 2),
            nn.ReLU(),
            Block(24, 24),
            Block(24, 28),
            Block(28, 32, 2),
            Block(32, 36),
            Block(36, 42),
            Block(42, 48, 2),
            Block(48, 56),
            Block(56, 64),
            Block(64, 72),
            Block(72, 80),
            Block(80, 88),
        )
        self.end = nn.Sequential(Block(88, 96, 2), *(Block(96, 96) for _ in range(4)))
        self.scores = nn.ModuleList(nn.Conv2d(c, n, 1) for c, n in ((88, 2), (96, 6)))
        self.boxes = nn.ModuleList(nn.Conv2d(c, 16 * n, 1) for c, n in ((88, 2), (96, 6)))

    def forward(self, pictures: Tensor) -> Tensor:
        near = self.start(pictures)
        images = (near, self.end(near))

        def rows(layers: nn.ModuleList, count: int) -> Tensor:
            found = [layer(x).permute(0, 2, 3, 1) for layer, x in zip(layers, images, strict=True)]
            return torch.cat([x.reshape(x.shape[0], -1, count) for x in found], 1)

        return torch.cat([rows(self.boxes, 16), rows(self.scores, 1).sigmoid()], -1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Selfies().eval()
