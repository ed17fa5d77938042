"""Shapes of point clouds, as DGCNN: edges to the nearest points, found anew in each layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

NEIGHBOURS = 20
WIDTHS = (64, 64, 128, 256)
FEATURES = 1024
CLASSES = 40


def edges(x: Tensor) -> Tensor:
    """float32[batch, c, n] to float32[batch, 2 c, n, k]: differences to neighbours, and itself"""
    batch, channels, count = x.shape
    rows = x.transpose(1, 2).contiguous()
    # By products of matrices, distances would be too inexact to tell neighbours apart.
    far = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    nearest = far.topk(NEIGHBOURS, dim=-1, largest=False).indices
    places = nearest.view(batch, 1, count * NEIGHBOURS).expand(-1, channels, -1)
    found = x.gather(2, places).view(batch, channels, count, NEIGHBOURS)
    own = x.unsqueeze(-1).expand(-1, -1, -1, NEIGHBOURS)
    return torch.cat([found - own, own], 1)


class EdgeConvolution(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2 * inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(0.2),
        )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(edges(x))
        return y.max(-1).values


class Near(nn.Module):
    """float32[batch, 3, 512] to float32[batch, 40]"""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EdgeConvolution(a, b) for a, b in zip((3, *WIDTHS), WIDTHS, strict=False)
        )
        self.features = nn.Sequential(
            nn.Conv1d(sum(WIDTHS), FEATURES, 1, bias=False),
            nn.BatchNorm1d(FEATURES),
            nn.LeakyReLU(0.2),
        )
        self.classes = nn.Sequential(
            nn.Linear(2 * FEATURES, 512, bias=False),
            nn.BatchNorm1d(512),
            nn.LeakyReLU(0.2),
            nn.Dropout(),
            nn.Linear(512, 256),
            nn.BatchNorm1d(256),
            nn.LeakyReLU(0.2),
            nn.Dropout(),
            nn.Linear(256, CLASSES),
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight, 0.2)

    def forward(self, points: Tensor) -> Tensor:
        x, parts = points, []
        for layer in self.layers:
            x = layer(x)
            parts.append(x)
        y = self.features(torch.cat(parts, 1))
        pooled = torch.cat(
            [
                functional.adaptive_max_pool1d(y, 1).squeeze(-1),
                functional.adaptive_avg_pool1d(y, 1).squeeze(-1),
            ],
            1,
        )
        result: Tensor = self.classes(pooled)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Near().eval()
