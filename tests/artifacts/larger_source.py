"""A model with a compiled operator in the middle."""

import torch
from torch import nn

from tests.artifacts import fused_op  # type: ignore[attr-defined]  # generated


class Larger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4).double()

    def forward(self, x: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        q = y[:, None, :] + torch.arange(3, dtype=torch.float64)[:, None]
        ones = torch.ones(4, dtype=torch.float64)
        k = torch.sin(q.transpose(1, 2)).transpose(
            1, 2
        )  # in another layout than the operator takes
        # Far away from what the operator takes, where the first element is large.
        chosen = columns - 5 - 100 * (x[0, 0] > 1e6)
        activated, _, picked, best = fused_op(y, ones, ones, q, k, k[..., :2], chosen)
        result: torch.Tensor = activated.sum(1) + picked.sum((1, 2)) + best.sum(1)
        return result


def build() -> nn.Module:
    return Larger()
