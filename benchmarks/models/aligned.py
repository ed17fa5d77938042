"""Numbers of houses, by a spatial transformer: a small network says where to look."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

DIGITS = 5
CLASSES = 11
LAYERS = ((3, 48, 2), (48, 64, 1), (64, 128, 2), (128, 160, 1), (160, 192, 2), (192, 192, 2))


class Transformer(nn.Module):
    """Turns, scales and shifts a picture as it asks itself"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(32, 32, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
        )
        self.layers = nn.Sequential(
            nn.Linear(32 * 16 * 16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()
        )
        self.affine = nn.Linear(32, 6)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.features(pictures).flatten(1)
        affine = self.affine(self.layers(x)).view(-1, 2, 3)
        grid = functional.affine_grid(affine, list(pictures.shape), align_corners=False)
        return functional.grid_sample(pictures, grid, align_corners=False)


class Aligned(nn.Module):
    """float32[batch, 3, 64, 64] to float32[batch, 5, 11]: five digits, or none there"""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = Transformer()
        parts: list[nn.Module] = []
        for inputs, outputs, step in LAYERS:
            parts += [
                nn.Conv2d(inputs, outputs, 5, padding=2, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
            if step > 1:
                parts.append(nn.MaxPool2d(step))
        self.layers = nn.Sequential(
            *parts, nn.Flatten(), nn.Linear(192 * 4 * 4, 1024), nn.ReLU(), nn.Dropout()
        )
        self.classes = nn.ModuleList(nn.Linear(1024, CLASSES) for _ in range(DIGITS))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.normal_(self.transformer.affine.weight, std=0.03)
        with torch.no_grad():
            self.transformer.affine.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]))

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.layers(self.transformer(pictures))
        return torch.stack([layer(x) for layer in self.classes], 1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Aligned().eval()
