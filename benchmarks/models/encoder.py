"""A text encoder with the sizes of BERT-base, of which it has the first four layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 30522
WIDTH = 768
HEADS = 12
LAYERS = 4
MAX_TOKENS = 512


class Layer(nn.Module):
    """Attention and feed-forward network, normalised after each residual."""

    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        heads = self.query_key_value(x).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.output(y.transpose(1, 2).flatten(2)))
        x = self.norm2(x + self.down(functional.gelu(self.up(x))))
        return x


class Encoder(nn.Module):
    """Token ids and a mask to one vector per token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(MAX_TOKENS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        tokens: Tensor = self.tokens(input_ids)
        x: Tensor = self.norm(tokens + self.positions.weight[: input_ids.shape[1]])
        # Finite, so that a row of nothing but padding gives no NaN.
        lowest = torch.finfo(torch.float32).min
        mask = torch.where(attention_mask != 0, 0.0, lowest)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return x


def build() -> nn.Module:
    torch.manual_seed(0)
    return Encoder().eval()
