"""A detector as SSD300, with a narrow VGG: six images, each with boxes to start from."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = 21
WIDTHS = (128, 256, 128, 64, 64, 64)
SIDES = (38, 19, 10, 5, 3, 1)
STEPS = (8, 16, 32, 64, 100, 300)
SIZES = (30, 60, 111, 162, 213, 264, 315)
RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))


def starts() -> Tensor:
    """Centers and sizes of the boxes of all images: [8732, 4]."""
    boxes = []
    for side, step, size, more, ratios in zip(SIDES, STEPS, SIZES, SIZES[1:], RATIOS):
        both = [size / 300, (size * more) ** 0.5 / 300]
        shapes = [(a, a) for a in both]
        for root in (ratio**0.5 for ratio in ratios):
            shapes += [(both[0] * root, both[0] / root), (both[0] / root, both[0] * root)]
        for row, column in itertools.product(range(side), repeat=2):
            x, y = (column + 0.5) * step / 300, (row + 0.5) * step / 300
            boxes += [(x, y, width, height) for width, height in shapes]
    return torch.tensor(boxes).clamp(0, 1)


def layers(inputs: int, *widths: int) -> list[nn.Module]:
    pairs = itertools.pairwise((inputs, *widths))
    return [part for a, b in pairs for part in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]


def smaller(inputs: int, narrow: int, outputs: int, step: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, narrow, 1),
        nn.ReLU(),
        nn.Conv2d(narrow, outputs, 3, step, padding=step - 1),
        nn.ReLU(),
    )


class Length(nn.Module):
    """Each pixel's channels, scaled to one length."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((channels,), 20.0))

    def forward(self, x: Tensor) -> Tensor:
        x = x / (x.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-10)
        return self.weight[None, :, None, None] * x


class Priors(nn.Module):
    """float32[batch, 3, 300, 300] to float32[batch, 8732, 25]: corners and classes"""

    starts: Tensor

    def __init__(self) -> None:
        super().__init__()
        half, rounded = nn.MaxPool2d(2, 2), nn.MaxPool2d(2, 2, ceil_mode=True)
        near = [*layers(3, 16), half, *layers(16, 32), half, *layers(32, 64, 64), rounded]
        self.near = nn.Sequential(*near, *layers(64, 128, 128))
        self.length = Length(128)
        far = [half, *layers(128, 128, 128), nn.MaxPool2d(3, 1, 1)]
        far += [nn.Conv2d(128, 256, 3, padding=6, dilation=6), nn.ReLU()]
        self.far = nn.ModuleList([nn.Sequential(*far, nn.Conv2d(256, 256, 1), nn.ReLU())])
        for (a, b), step in zip(itertools.pairwise(WIDTHS[1:]), (2, 2, 1, 1), strict=True):
            self.far.append(smaller(a, b // 2, b, step))
        counts = [2 + 2 * len(ratios) for ratios in RATIOS]
        pairs = list(zip(WIDTHS, counts, strict=True))
        self.boxes = nn.ModuleList(nn.Conv2d(w, 4 * n, 3, padding=1) for w, n in pairs)
        self.classes = nn.ModuleList(nn.Conv2d(w, CLASSES * n, 3, padding=1) for w, n in pairs)
        self.register_buffer("starts", starts())

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.near(pictures)
        images = [self.length(x)]
        for part in self.far:
            x = part(x)
            images.append(x)

        def rows(heads: nn.ModuleList) -> Tensor:
            found = [head(x).permute(0, 2, 3, 1) for head, x in zip(heads, images, strict=True)]
            return torch.cat([x.contiguous().view(x.shape[0], -1) for x in found], 1)

        moves = rows(self.boxes).view(x.shape[0], -1, 4)
        classes = rows(self.classes).view(x.shape[0], -1, CLASSES)
        centers = self.starts[:, :2] + moves[..., :2] * 0.1 * self.starts[:, 2:]
        sizes = self.starts[:, 2:] * torch.exp(moves[..., 2:] * 0.2)
        corner = centers - sizes / 2
        return torch.cat([corner, corner + sizes, functional.softmax(classes, -1)], -1)


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Priors()
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
    return model.eval()
