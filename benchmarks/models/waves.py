"""The start of wav2vec 2.0: strided convolutions over raw sound, and one of many groups."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 256
LAYERS = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
GROUPS = 16
AROUND = 65


class Waves(nn.Module):
    """float32[batch, 16000] to float32[batch, 49, 256]"""

    def __init__(self) -> None:
        super().__init__()
        inputs = (1, *(WIDTH for _ in LAYERS))
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, WIDTH, kernel, stride, bias=False)
            for channels, (kernel, stride) in zip(inputs, LAYERS)
        )
        self.first_norm = nn.GroupNorm(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.places = nn.Conv1d(WIDTH, WIDTH, AROUND, padding=AROUND // 2, groups=GROUPS)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, sound: Tensor) -> Tensor:
        x = sound[:, None]
        for i, layer in enumerate(self.layers):
            x = layer(x)
            x = functional.gelu(self.first_norm(x) if i == 0 else x)
        x = self.project(self.norm(x.transpose(1, 2)))
        result: Tensor = x + functional.gelu(self.places(x.transpose(1, 2))).transpose(1, 2)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Waves().eval()
