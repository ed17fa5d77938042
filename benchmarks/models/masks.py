"""Mask2Former's decoder: queries look at the pixels that their last masks contain."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 256
HEADS = 8
QUERIES = 100
CLASSES = 81
SIDES = (4, 8, 16)
CHANNELS = (64, 128, 256, 512)


def waves(side: int) -> Tensor:
    """Sines and cosines of rows and columns: [pixels, WIDTH]."""
    steps = 10000 ** (torch.arange(0, WIDTH // 2, 2) / (WIDTH // 2))
    angles = (torch.arange(side) + 1)[:, None] * (2 * torch.pi / side) / steps
    line = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    rows, columns = line[:, None].expand(-1, side, -1), line[None].expand(side, -1, -1)
    return torch.cat([rows, columns], -1).flatten(0, 1)


def layer(inputs: int, outputs: int, kernel: int, step: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, step, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.GroupNorm(32, outputs))


class Pixels(nn.Module):
    """Images of a small network, each with what the smaller ones say."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Sequential(layer(3, 32, 3, 2), nn.ReLU())
        pairs = list(itertools.pairwise((32, *CHANNELS)))
        self.down = nn.ModuleList(
            nn.Sequential(layer(a, b, 3, 2), nn.ReLU(), layer(b, b, 3), nn.ReLU()) for a, b in pairs
        )
        self.sides = nn.ModuleList(layer(b, WIDTH, 1) for _, b in pairs)
        self.smooth = nn.ModuleList(layer(WIDTH, WIDTH, 3) for _ in pairs)
        self.masks = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, pictures: Tensor) -> tuple[list[Tensor], Tensor]:
        x, images = self.start(pictures), []
        for down, side in zip(self.down, self.sides, strict=True):
            x = down(x)
            images.append(side(x))
        found: list[Tensor] = []
        for image, smooth in zip(reversed(images), self.smooth, strict=True):
            if found:
                image = image + functional.interpolate(found[-1], image.shape[-2:], mode="nearest")
            found.append(functional.relu(smooth(image)))
        return found[:-1], self.masks(found[-1])


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.across, self.among = (
            nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(2)
        )
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 8 * WIDTH), nn.ReLU(), nn.Linear(8 * WIDTH, WIDTH)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))

    def forward(self, x: Tensor, order: Tensor, image: Tensor, at: Tensor, mask: Tensor) -> Tensor:
        x = self.norms[0](x + self.across(x + order, image + at, image, attn_mask=mask)[0])
        y = x + order
        x = self.norms[1](x + self.among(y, y, x)[0])
        result: Tensor = self.norms[2](x + self.layers(x))
        return result


class Masks(nn.Module):
    """float32[batch, 3, 128, 128] to float32[batch, 100, 81], float32[batch, 100, 32, 32]"""

    def __init__(self) -> None:
        super().__init__()
        self.pixels = Pixels()
        self.start, self.order = (nn.Parameter(torch.randn(QUERIES, WIDTH)) for _ in range(2))
        self.levels = nn.Parameter(torch.randn(len(SIDES), WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in SIDES)
        for side in SIDES:
            self.register_buffer(f"at{side}", waves(side))
        self.norm, self.classes = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        sizes = [part for _ in range(2) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        self.embed = nn.Sequential(*sizes, nn.Linear(WIDTH, WIDTH))

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        images, features = self.pixels(pictures)
        x = self.start.expand(pictures.shape[0], -1, -1)
        masks = torch.einsum("bqc,bchw->bqhw", self.embed(self.norm(x)), features)
        for i, (layer, image) in enumerate(zip(self.layers, images, strict=True)):
            size = image.shape[-2:]
            seen = functional.interpolate(masks, size, mode="bilinear", align_corners=False)
            hidden = seen.sigmoid().flatten(2)[:, None].repeat(1, HEADS, 1, 1).flatten(0, 1) < 0.5
            hidden = hidden & ~hidden.all(-1, keepdim=True)
            rows = image.flatten(2).transpose(1, 2) + self.levels[i]
            x = layer(x, self.order, rows, self.get_buffer(f"at{SIDES[i]}"), hidden)
            masks = torch.einsum("bqc,bchw->bqhw", self.embed(self.norm(x)), features)
        return self.classes(self.norm(x)), masks


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Masks()
    for part in model.embed:
        if isinstance(part, nn.Linear):
            nn.init.kaiming_normal_(part.weight)
    return model.eval()
