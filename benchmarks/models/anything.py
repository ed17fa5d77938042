"""The encoder of pictures of Segment Anything: attention in windows that knows rows and columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 192
HEADS = 3
SIZE = 16
WINDOW = 8
PATCH = 16
LAYERS = 4
OUTPUTS = 64


class Attention(nn.Module):
    """Scores with a part that depends on the query and on how far rows and columns are apart."""

    index: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.outputs = nn.Linear(WIDTH, WIDTH)
        head = WIDTH // HEADS
        self.rows, self.columns = (
            nn.Parameter(torch.randn(2 * size - 1, head) * 0.1) for _ in range(2)
        )
        places = torch.arange(size)
        self.register_buffer("index", places[:, None] - places + size - 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, height, width, _ = x.shape
        parts = self.inputs(x).view(batch, height * width, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.flatten(1, 2).unbind(0)
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(1, 2)
        places = query.view(batch * HEADS, height, width, -1)
        rows = torch.einsum("bhwc,hkc->bhwk", places, self.rows[self.index])
        columns = torch.einsum("bhwc,wkc->bhwk", places, self.columns[self.index])
        scores = scores.view(batch * HEADS, height, width, height, width)
        scores = scores + rows[..., None] + columns[..., None, :]
        scores = scores.view(batch * HEADS, height * width, height * width)
        y = (scores.softmax(-1) @ value).view(batch, HEADS, height, width, -1)
        result: Tensor = self.outputs(y.permute(0, 2, 3, 1, 4).flatten(3))
        return result


class Layer(nn.Module):
    """Attention, in windows or everywhere, and two linear layers."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, eps=1e-6) for _ in range(2))
        self.attention = Attention(window)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        y, count, window = self.norms[0](x), SIZE // self.window, self.window
        y = y.view(-1, count, window, count, window, WIDTH).transpose(2, 3)
        y = self.attention(y.reshape(-1, window, window, WIDTH))
        y = y.view(-1, count, count, window, window, WIDTH).transpose(2, 3)
        x = x + y.reshape(x.shape)
        result: Tensor = x + self.layers(self.norms[1](x))
        return result


class ChannelNorm(nn.Module):
    """A layer norm over channels, which come first."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x - x.mean(1, keepdim=True)
        return x * ((x * x).mean(1, keepdim=True) + 1e-6).rsqrt() * self.weight + self.bias


class Anything(nn.Module):
    """float32[batch, 3, 256, 256] to float32[batch, 64, 16, 16]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.randn(1, SIZE, SIZE, WIDTH) * 0.02)
        self.layers = nn.Sequential(
            *(Layer(SIZE if i == LAYERS - 1 else WINDOW) for i in range(LAYERS))
        )
        self.end = nn.Sequential(
            nn.Conv2d(WIDTH, OUTPUTS, 1, bias=False),
            ChannelNorm(OUTPUTS),
            nn.Conv2d(OUTPUTS, OUTPUTS, 3, padding=1, bias=False),
            ChannelNorm(OUTPUTS),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patches(pictures).permute(0, 2, 3, 1) + self.places
        result: Tensor = self.end(self.layers(x).permute(0, 3, 1, 2))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Anything().eval()
