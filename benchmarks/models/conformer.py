"""The encoder of a Conformer for speech: attention and depthwise convolutions over time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDS = 80
WIDTH = 144
HEADS = 4
DEPTH = 4
KERNEL = 31


class Feed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + 0.5 * self.layers(x)
        return result


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.widen = nn.Conv1d(WIDTH, 2 * WIDTH, 1)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, KERNEL, padding=KERNEL // 2, groups=WIDTH)
        self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.narrow = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.glu(self.widen(self.norm(x).transpose(1, 2)), dim=1)
        y = functional.silu(self.batch_norm(self.depthwise(y)))
        result: Tensor = x + self.narrow(y).transpose(1, 2)
        return result


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, steps, _ = x.shape
        parts = self.query_key_value(self.norm(x)).view(batch, steps, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        result: Tensor = x + self.merge(y.transpose(1, 2).reshape(batch, steps, WIDTH))
        return result


class Conformer(nn.Module):
    """float32[batch, 1, frames, 80] to float32[batch, frames / 4, 144]"""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, WIDTH, 3, 2, 1), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, 2, 1), nn.ReLU()
        )
        self.project = nn.Linear(WIDTH * BANDS // 4, WIDTH)
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(Feed(), Attention(), Convolution(), Feed(), nn.LayerNorm(WIDTH))
                for _ in range(DEPTH)
            )
        )

    def forward(self, sound: Tensor) -> Tensor:
        x = self.stem(sound)
        result: Tensor = self.blocks(self.project(x.permute(0, 2, 1, 3).flatten(2)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Conformer().eval()
