"""Who speaks, as ECAPA-TDNN hears it: dilated convolutions over time, and attentive statistics."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BANDS = 80
CHANNELS = 256
SCALE = 8
HIDDEN = 64
EMBEDDING = 192


class Layer(nn.Module):
    """A convolution, and a batch norm behind its activation."""

    def __init__(self, inputs: int, outputs: int, size: int, dilation: int = 1) -> None:
        super().__init__()
        padding = dilation * (size - 1) // 2
        self.convolution = nn.Conv1d(inputs, outputs, size, dilation=dilation, padding=padding)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(torch.relu(self.convolution(x)))
        return y


class Block(nn.Module):
    """Groups of channels, each of which also hears the one before, and weights of channels."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        part = CHANNELS // SCALE
        self.enter = Layer(CHANNELS, CHANNELS, 1)
        self.parts = nn.ModuleList(Layer(part, part, 3, dilation) for _ in range(SCALE - 1))
        self.leave = Layer(CHANNELS, CHANNELS, 1)
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool1d(1),
            nn.Conv1d(CHANNELS, HIDDEN, 1),
            nn.ReLU(),
            nn.Conv1d(HIDDEN, CHANNELS, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        first, *others = self.enter(x).chunk(SCALE, 1)
        parts = [first]
        for i, (layer, part) in enumerate(zip(self.parts, others, strict=True)):
            parts.append(layer(part + parts[-1] if i else part))
        y = self.leave(torch.cat(parts, 1))
        result: Tensor = x + y * self.weigh(y)
        return result


class Speakers(nn.Module):
    """float32[batch, 80, 300] to float32[batch, 192]"""

    def __init__(self) -> None:
        super().__init__()
        self.start = Layer(BANDS, CHANNELS, 5)
        self.blocks = nn.ModuleList(Block(dilation) for dilation in (2, 3, 4))
        width = 3 * CHANNELS
        self.merge = nn.Conv1d(width, width, 1)
        self.attention = nn.Sequential(
            nn.Conv1d(3 * width, HIDDEN, 1), nn.Tanh(), nn.Conv1d(HIDDEN, width, 1)
        )
        self.norm = nn.BatchNorm1d(2 * width)
        self.head = nn.Linear(2 * width, EMBEDDING)

    def forward(self, bands: Tensor) -> Tensor:
        x = self.start(bands)
        parts = []
        for block in self.blocks:
            x = block(x)
            parts.append(x)
        x = torch.relu(self.merge(torch.cat(parts, 1)))
        mean, deviation = x.mean(2, keepdim=True), x.std(2, keepdim=True)
        context = torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], 1)
        weights = self.attention(context).softmax(2)
        mean = (x * weights).sum(2)
        deviation = ((x * x * weights).sum(2) - mean * mean).clamp(min=1e-5).sqrt()
        result: Tensor = self.head(self.norm(torch.cat([mean, deviation], 1)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Speakers().eval()
