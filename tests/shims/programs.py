"""Small models: one that the slim runtime does not cover, and others that it does."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import nn


class Scores(nn.Module):
    """float32[batch, 8] -> float32[batch, 3]: each row sums to 1."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 8, generator=generator))
        self.bias = nn.Parameter(torch.randn(3, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias).softmax(-1)


class Decomposed(nn.Module):
    """float32[4, 4] -> the Cholesky factor of x x^T + 1, by torch.linalg.cholesky's predecessor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factor: torch.Tensor = torch.cholesky(x @ x.mT + torch.eye(4))
        return factor


class Lookup(nn.Module):
    """int64[rows] -> float32[rows, 64]: each row of a table, found by a number computed of it."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(1000, 64, generator=generator))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        # No input is an index by itself: only the kernel can tell whether one is in range.
        return nn.functional.embedding(ids * 2 - ids, self.table)


class Sampler(nn.Module):
    """The k most likely of the last dim of float32[batch, 16], which is rolled by ``shift``, and
    how likely they are.
    """

    def forward(
        self,
        x: torch.Tensor,
        k: int,
        temperature: float = 1.0,
        order: str = "first",
        shift: int = 0,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.roll(shift, -1)
        likely, indices = (x / temperature).softmax(-1).topk(k, -1, largest=order == "first")
        return likely, indices * temperature


class Point(NamedTuple):
    """A result within a result."""

    x: torch.Tensor
    weight: float


@dataclasses.dataclass
class Loss:
    """A result that torch.export knows, because it is registered."""

    value: torch.Tensor
    gradient: torch.Tensor | None
    count: int


torch.export.register_dataclass(Loss)


class Structured(nn.Module):
    """float32[batch, 4] and an int -> a result of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x: torch.Tensor, k: int) -> dict[str, Any]:
        batch = x.shape[0]
        return {
            "logits": x * self.scale,
            "cache": [x + 1, (x.sum(), None)],
            "loss": Loss(x.mean(), None, batch * k),
            "points": [Point(x[0], batch / 2), Point(x[-1], 0.25)],
            "mean": x.mean().item(),
            "many": batch > 8,
            "positive": (x > 0).all().item(),
            "mode": "last",
            "classes": 4,
            "nothing": None,
        }


class Recurrent(nn.Module):
    """float32[batch, steps, 5] -> float32[batch, steps, 8] of an LSTM, and float32[steps, 7] of a
    GRU, which goes on where the call before ended.
    """

    memory: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True, proj_size=4)
        self.gru = nn.GRU(8, 7)
        self.register_buffer("memory", torch.zeros(1, 7))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, _ = self.lstm(x)
        z, last = self.gru(y.mean(0), self.memory)
        self.memory.copy_(last)
        return y, z


class CachedAttention(nn.Module):
    """Attention of new tokens to a cache and themselves, with a mask for both; the means of each
    two keys, with an offset for each; and the keys made to as many, whatever their number.
    """

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.Linear(8, 8)

    def forward(
        self, x: torch.Tensor, cache: torch.Tensor, mask: torch.Tensor, offsets: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        keys = torch.cat([cache, self.project(x)], dim=1)
        scores = x @ keys.transpose(1, 2) + mask
        means = nn.functional.avg_pool2d(keys, (2, 1), ceil_mode=True)
        few = nn.functional.adaptive_avg_pool2d(keys, (3, 8))
        most, _ = nn.functional.adaptive_max_pool2d(keys, (4, 5), return_indices=True)
        gated = nn.functional.glu(torch.cat([keys, keys], dim=1), 1)
        return scores.softmax(-1) @ keys, keys, means + offsets, few, most, gated


class NarrowImages(nn.Module):
    """float32[batch, 3, rows, columns] -> a picture and a line, by convolutions of several kinds,
    whose weights are bfloat16.
    """

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 32, 3, 2, 1)
        self.norm = nn.BatchNorm2d(32)
        self.body = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.groups = nn.Conv2d(32, 48, 3, padding=2, dilation=2, groups=2)
        self.depthwise = nn.Conv2d(48, 48, 3, padding=1, groups=48)
        self.pixels = nn.Conv2d(80, 32, 1)
        self.expand = nn.Conv2d(32, 64, 1)
        self.filter = nn.Conv2d(64, 64, 3, padding=1, groups=64)
        self.project = nn.Conv2d(64, 32, 1)
        self.up = nn.ConvTranspose2d(32, 20, 3, padding=1)
        self.even = nn.Conv2d(40, 20, 2, padding="same")
        self.line = nn.Conv1d(20, 8, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = nn.functional.silu(self.stem(x))
        y = y + self.norm(self.body(y)).relu()
        wide = self.depthwise(nn.functional.hardswish(self.groups(y)))
        y = self.pixels(torch.cat((y, wide), 1)).relu() + y
        within = self.filter(self.expand(y).relu())
        y = self.project(nn.functional.hardswish(within)).relu() + y
        y = self.up(y).relu()
        picture = self.even(torch.cat((nn.functional.max_pool2d(y, 3, 1, 1), y), 1))
        return picture, self.line(picture.flatten(2))
