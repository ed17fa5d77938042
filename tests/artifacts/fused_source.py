"""Functions that are worth a kernel of their own: all that is trained is an argument."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Fused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.out = nn.Linear(4, 5).double()

    def forward(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        columns: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        activated = F.gelu(F.layer_norm(x, (4,), weight, bias))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        attended = torch.softmax(scores, -1) @ v
        picked = torch.tanh(self.out(attended @ weight.reshape(2, 2).repeat(1, 2)))[:, :, columns]
        return activated, attended, picked, picked.argmax(-1)


def build() -> nn.Module:
    return Fused()
