"""Pools the embeddings of tokens: an argument that may be None, and one that chooses code."""

import torch
from torch import Tensor, nn

WIDTH = 8


class Pooler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, WIDTH)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, mode: str = "mean") -> Tensor:
        """Tokens [batch, seq], and which of them count -> embeddings [batch, 8]."""
        embedded: Tensor = self.table(tokens)
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        chosen = mask.unsqueeze(-1)
        if mode == "max":
            return embedded.masked_fill(~chosen, float("-inf")).amax(dim=1)
        if mode == "mean":
            return (embedded * chosen).sum(dim=1) / chosen.sum(dim=1).clamp(min=1)
        raise ValueError(f'mode is "{mode}", expected "mean" or "max"')
