"""A model that calls an operator of its own."""

import torch
from torch import Tensor, nn

# An operator whose body is made of PyTorch's operators: with this key, torch.export goes into it.
_library = torch.library.Library("recipe", "DEF")
_library.define("soft_clip(Tensor x, float limit) -> Tensor")


@torch.library.impl(_library, "soft_clip", "CompositeImplicitAutograd")
def _soft_clip(x: Tensor, limit: float) -> Tensor:
    return torch.tanh(x / limit) * limit


class Clipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        clipped: Tensor = torch.ops.recipe.soft_clip(self.linear(x), 3.0)
        return clipped
