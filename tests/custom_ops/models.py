"""Models that call the operators."""

import torch
from torch import Tensor, nn


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.arange(4.0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        own = x + 1
        torch.ops.tested.increment(own, x.shape[0])
        result: tuple[Tensor, Tensor] = torch.ops.tested.scale(own, self.bias, [1], "max")
        return result


class Copied(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.tested.scale(x) + 1
        return result


class Squared(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.on_tensor.squared(x) + 1
        return result
