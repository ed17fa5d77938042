"""Every kind of argument at once: an optional tensor, numbers, a bool and a mode, with defaults."""

import torch
from torch import Tensor, nn


class Attender(nn.Module):
    """int64[batch, seq] -> the k largest of float32[batch, 8], and which they are."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.sin(torch.arange(800.0)).view(100, 8))

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        temperature: float = 1.0,
        causal: bool = True,
        mode: str = "mean",
        k: int = 5,
    ) -> tuple[Tensor, Tensor]:
        x = self.table[tokens]
        weights = (x @ x.mT / temperature).softmax(-1)
        if causal:
            weights = weights.tril()
        if mask is not None:
            weights = weights * mask[:, None]
        x = weights @ x
        pooled = x.mean(1) if mode == "mean" else x.amax(1)
        largest, indices = pooled.topk(k, -1)
        return largest, indices
