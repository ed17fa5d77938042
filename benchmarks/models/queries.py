"""A detector as DETR: features of a picture, an encoder, and a decoder of 50 objects."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from benchmarks.models.mobilenet import convolution

WIDTH = 128
HEADS = 4
OBJECTS = 50
PIXELS = 14 * 14
CLASSES = 92


class Detr(nn.Module):
    """float32[batch, 3, 224, 224] to float32[batch, 50, 96]: boxes and classes"""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 32, 64, 96, WIDTH)
        self.features = nn.Sequential(
            *(
                part
                for a, b in itertools.pairwise(widths)
                for part in (convolution(a, b, 3, 2), nn.ReLU())
            )
        )
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True)
            for _ in range(3)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True)
            for _ in range(3)
        )
        self.places = nn.Parameter(torch.randn(PIXELS, WIDTH) * 0.1)
        self.objects = nn.Parameter(torch.randn(OBJECTS, WIDTH))
        self.boxes = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
        self.classes = nn.Linear(WIDTH, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.features(pictures).flatten(2).transpose(1, 2) + self.places
        for layer in self.encoder:
            x = layer(x)
        y = self.objects.expand(x.shape[0], -1, -1)
        for layer in self.decoder:
            y = layer(y, x)
        return torch.cat([self.boxes(y).sigmoid(), self.classes(y)], -1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Detr().eval()
