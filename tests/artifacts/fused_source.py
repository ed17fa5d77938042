"""Two functions that are worth a kernel of their own: all that they read is an argument."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Fused(nn.Module):
    def forward(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        activated = F.gelu(F.layer_norm(x, (4,), weight, bias))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return activated, torch.softmax(scores, -1) @ v


def build() -> nn.Module:
    return Fused()
