"""Models with objects."""

import torch
from torch import Tensor, nn

CLASSES = torch.classes.tested_classes


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.counted = CLASSES.Counted(100)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.counted.alive(x)
        return result


class Both(nn.Module):
    """Its objects are members of it and of a part."""

    def __init__(self) -> None:
        super().__init__()
        self.everything = CLASSES.Everything(
            torch.arange(6.0).view(2, 3).T,
            2,
            0.5,
            True,
            "name",
            [torch.tensor([30]), torch.tensor([[7]])],
            [1, 2],
            [0.25],
            ["zero", "", "zwei \u2192"],
        )
        self.part = Part()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        added, weights = self.everything.add(
            x, x.shape[0], 0.125, bias=None, twice=True, word="zwei \u2192"
        )
        return added * self.everything.count(), weights, self.part(x)
