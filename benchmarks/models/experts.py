"""A text encoder whose feed-forward networks are mixtures of eight experts.

All experts compute for every token, and the gates of those that were not chosen are zero: the sizes
of the computation don't depend on values, so that every compiler can export it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 8192
WIDTH = 256
HEADS = 4
HIDDEN = 512
LAYERS = 4
EXPERTS = 8
CHOSEN = 2


class Experts(nn.Module):
    """The two experts that the router prefers, weighted by how much it does."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * WIDTH**-0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) * HIDDEN**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        scores, chosen = self.router(x).topk(CHOSEN, -1)
        gates = x.new_zeros(x.shape[0], EXPERTS).scatter(1, chosen, scores.softmax(-1))
        hidden = functional.silu(torch.bmm(x.expand(EXPERTS, -1, -1), self.up))
        outputs = torch.bmm(hidden, self.down)  # [experts, tokens, width]
        return (outputs * gates.t()[:, :, None]).sum(0)


class Layer(nn.Module):
    """Attention and experts, each behind a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.experts = Experts()

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(self.norm1(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        mixed: Tensor = self.experts(self.norm2(x).flatten(0, 1))
        return x + mixed.view_as(x)


class Mixture(nn.Module):
    """Token ids to one vector per token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, input_ids: Tensor) -> Tensor:
        states: Tensor = self.norm(self.layers(self.tokens(input_ids)))
        return states


def build() -> nn.Module:
    torch.manual_seed(0)
    return Mixture().eval()
