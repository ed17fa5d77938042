"""Objects around a car, as PointPillars: columns of points become pixels of a map from above."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

POINT = 9
WIDTH = 64
SIDE = 64
STAGES = ((64, 3), (128, 5), (256, 5))
NECK = 128
ANCHORS = 6
OUTPUTS = (3, 7, 2)  # of each anchor: classes, a box, directions


class Pillars(nn.Module):
    """float32[batch, 512, 32, 9], int64[batch, 512] to float32[batch, 6144, 12]"""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(POINT, WIDTH, bias=False)
        self.norm = nn.BatchNorm1d(WIDTH, eps=1e-3, momentum=None)
        self.stages, self.necks = nn.ModuleList(), nn.ModuleList()
        inputs = WIDTH
        for i, (width, depth) in enumerate(STAGES):
            layers: list[nn.Module] = []
            for step in (2, *(1 for _ in range(depth))):
                layers += [nn.Conv2d(inputs, width, 3, step, 1, bias=False), self.norm2(width)]
                layers.append(nn.ReLU())
                inputs = width
            self.stages.append(nn.Sequential(*layers))
            up = nn.ConvTranspose2d(width, NECK, 2**i, 2**i, bias=False)
            self.necks.append(nn.Sequential(up, self.norm2(NECK), nn.ReLU()))
        self.heads = nn.ModuleList(nn.Conv2d(3 * NECK, ANCHORS * n, 1) for n in OUTPUTS)

    @staticmethod
    def norm2(width: int) -> nn.BatchNorm2d:
        return nn.BatchNorm2d(width, eps=1e-3, momentum=None)

    def map(self, points: Tensor, places: Tensor) -> Tensor:
        """The pillars' features where they stand: what stands at one place is added."""
        batch, count = places.shape
        x = self.linear(points.flatten(0, 1))
        x = functional.relu(self.norm(x.permute(0, 2, 1)).permute(0, 2, 1))
        x = x.max(1)[0].view(batch, count, WIDTH)
        rows = torch.arange(batch, device=places.device)[:, None].expand(-1, count)
        canvas = x.new_zeros(batch, SIDE * SIDE, WIDTH)
        canvas = canvas.index_put((rows, places), x, accumulate=True)
        return canvas.transpose(1, 2).contiguous().view(batch, WIDTH, SIDE, SIDE)

    def forward(self, points: Tensor, places: Tensor) -> Tensor:
        x, parts = self.map(points, places), []
        for stage, neck in zip(self.stages, self.necks, strict=True):
            x = stage(x)
            parts.append(neck(x))
        y = torch.cat(parts, 1)
        found = []
        for head, size in zip(self.heads, OUTPUTS, strict=True):
            image = head(y).permute(0, 2, 3, 1)
            found.append(image.reshape(image.shape[0], -1, size))
        return torch.cat(found, -1)


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Pillars()
    with torch.no_grad():
        places = torch.stack([torch.randperm(SIDE * SIDE)[:512] for _ in range(2)])
        model.train()(torch.rand(2, 512, 32, POINT) * 2 - 1, places)
    return model.eval()
