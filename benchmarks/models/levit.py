"""LeViT: convolutions, then attention whose linear layers have batch norms and which subsamples."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (128, 256, 384)
HEADS = (4, 6, 8)
DEPTHS = (2, 3, 4)
KEY = 16
CLASSES = 1000


class Linear(nn.Module):
    """A linear layer and a batch norm over the tokens of all pictures."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        result: Tensor = self.norm(x.flatten(0, 1)).reshape_as(x)
        return result


class Attention(nn.Module):
    """With `step` 2, every other row and column of pixels asks."""

    index: Tensor

    def __init__(self, width: int, out: int, heads: int, side: int, ratio: int, step: int) -> None:
        super().__init__()
        self.heads, self.side, self.step, self.value = heads, side, step, ratio * KEY
        self.pairs = Linear(width, heads * (KEY + self.value))
        self.query = Linear(width, heads * KEY)
        self.outputs = nn.Sequential(nn.Hardswish(), Linear(heads * self.value, out))
        self.biases = nn.Parameter(torch.randn(heads, side * side) * 0.1)
        line = torch.arange(side)
        asked, pixels = (torch.cartesian_prod(r, r) for r in (line[::step], line))
        far = (asked[:, None] - pixels).abs()
        self.register_buffer("index", far[..., 0] * side + far[..., 1])

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        pairs = self.pairs(x).view(batch, count, self.heads, -1)
        key, value = pairs.split([KEY, self.value], 3)
        if self.step > 1:
            x = x.view(batch, self.side, self.side, width)[:, :: self.step, :: self.step]
            x = x.reshape(batch, -1, width)
        query = self.query(x).view(batch, -1, self.heads, KEY).permute(0, 2, 1, 3)
        scores = query @ key.permute(0, 2, 3, 1) * KEY**-0.5 + self.biases[:, self.index]
        y = (scores.softmax(-1) @ value.permute(0, 2, 1, 3)).transpose(1, 2)
        result: Tensor = self.outputs(y.reshape(batch, -1, self.heads * self.value))
        return result


class Residual(nn.Module):
    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.layers(x)
        return result


def wide(width: int) -> Residual:
    return Residual(
        nn.Sequential(Linear(width, 2 * width), nn.Hardswish(), Linear(2 * width, width))
    )


class LeViT(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b))
            for a, b in itertools.pairwise((3, 16, 32, 64, 128))
        )
        layers: list[nn.Module] = []
        side = 14
        for i, (width, heads) in enumerate(zip(WIDTHS, HEADS, strict=True)):
            if i:
                before = WIDTHS[i - 1]
                layers += [Attention(before, width, before // KEY, side, 4, 2), wide(width)]
                side = (side + 1) // 2
            for _ in range(DEPTHS[i]):
                layers += [Residual(Attention(width, width, heads, side, 2, 1)), wide(width)]
        self.layers = nn.Sequential(*layers)
        self.heads = nn.ModuleList(
            nn.Sequential(nn.BatchNorm1d(WIDTHS[-1]), nn.Linear(WIDTHS[-1], CLASSES))
            for _ in range(2)
        )

    def forward(self, pictures: Tensor) -> Tensor:
        x = pictures
        for i, layer in enumerate(self.stem):
            x = layer(functional.hardswish(x) if i else x)
        x = self.layers(x.flatten(2).transpose(1, 2)).mean(1)
        result: Tensor = (self.heads[0](x) + self.heads[1](x)) / 2
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    model = LeViT()
    for part in (*model.stem.modules(), *model.layers.modules()):
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.momentum = 0.5
        elif isinstance(part, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight)
    with torch.no_grad():
        model.train()(torch.rand(8, 3, 224, 224) * 2 - 1)
    return model.eval()
