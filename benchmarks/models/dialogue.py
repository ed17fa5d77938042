"""Two speakers of one sound, as SepFormer: transformers inside of pieces and across them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 128
HEADS = 8
FEED = 512
KERNEL = 16
PIECE = 64
HOP = PIECE // 2
ROUNDS = 2
SPEAKERS = 2


def waves() -> Tensor:
    angles = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000) / WIDTH))
    angles = torch.arange(PIECE)[:, None] * angles
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Layer(nn.Module):
    places: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", waves())
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, eps=1e-6) for _ in range(3))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.layers = nn.Sequential(nn.Linear(WIDTH, FEED), nn.ReLU(), nn.Linear(FEED, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.places[: x.shape[1]]
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.layers(self.norms[1](x))
        result: Tensor = self.norms[2](x)
        return result


class Round(nn.Module):
    """float32[batch, width, piece, pieces] to the same"""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.across = Layer(), Layer()
        self.norms = nn.ModuleList(nn.GroupNorm(1, WIDTH, eps=1e-8) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, width, length, count = x.shape
        y = x.permute(0, 3, 2, 1).contiguous().view(batch * count, length, width)
        y = self.inside(y).view(batch, count, length, width).permute(0, 3, 2, 1).contiguous()
        x = self.norms[0](y) + x
        y = x.permute(0, 2, 3, 1).contiguous().view(batch * length, count, width)
        y = self.across(y).view(batch, length, count, width).permute(0, 3, 1, 2).contiguous()
        result: Tensor = self.norms[1](y) + x
        return result


class Dialogue(nn.Module):
    """float32[batch, 4000] to float32[batch, 2, 4000]"""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, WIDTH, KERNEL, KERNEL // 2, bias=False)
        self.decoder = nn.ConvTranspose1d(WIDTH, 1, KERNEL, KERNEL // 2, bias=False)
        nn.init.normal_(self.encoder.weight, std=0.5)
        nn.init.normal_(self.decoder.weight, std=0.1)
        self.norm = nn.GroupNorm(1, WIDTH, eps=1e-8)
        self.narrow = nn.Conv1d(WIDTH, WIDTH, 1, bias=False)
        self.rounds = nn.Sequential(*(Round() for _ in range(ROUNDS)))
        self.speakers = nn.Sequential(nn.PReLU(), nn.Conv2d(WIDTH, SPEAKERS * WIDTH, 1))
        self.values = nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1), nn.Tanh())
        self.gates = nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1), nn.Sigmoid())
        self.masks = nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 1, bias=False), nn.ReLU())

    def forward(self, sound: Tensor) -> Tensor:
        batch = sound.shape[0]
        encoded = functional.relu(self.encoder(sound.unsqueeze(1)))
        x = self.narrow(self.norm(encoded))
        length = x.shape[2]
        x = functional.pad(x, (HOP, PIECE - (HOP + length % PIECE) % PIECE + HOP))
        padded = x.shape[2]
        x = functional.unfold(x.unsqueeze(3), (PIECE, 1), stride=(HOP, 1))
        x = self.speakers(self.rounds(x.view(batch, WIDTH, PIECE, -1)))
        x = x.reshape(batch * SPEAKERS, WIDTH * PIECE, -1)
        x = functional.fold(x, (padded, 1), (PIECE, 1), stride=(HOP, 1)).squeeze(3)
        x = x[:, :, HOP : HOP + length]
        masks = self.masks(self.values(x) * self.gates(x)).view(batch, SPEAKERS, WIDTH, length)
        y = (encoded.unsqueeze(1) * masks).view(batch * SPEAKERS, WIDTH, length)
        result: Tensor = self.decoder(y).view(batch, SPEAKERS, -1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Dialogue().eval()
