"""Attention in the forms that the kernels tell apart; small, as models_py.py says."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Masks(nn.Module):
    """A mask of booleans, and one of numbers with a scale. Two heads share one of keys, and the
    width is no power of two.
    """

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, seen: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Query [batch, 4, queries, 24], key and value [batch, 2, keys, 24], seen [batch, keys],
        bias [queries, keys] -> twice [batch, 4, queries, 24].
        """
        chosen = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=seen[:, None, None], enable_gqa=True
        )
        biased = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=bias, scale=0.5, enable_gqa=True
        )
        return chosen, biased


class Causal(nn.Module):
    """Causal, with more or fewer keys than queries; values are wider than keys."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Query [batch, queries, 2, 16], key [keys, 2, 16], value [keys, 2, 40] ->
        [batch, 2, queries, 40].
        """
        keys, values = (x.transpose(0, 1)[None] for x in (key, value))
        y: Tensor = functional.scaled_dot_product_attention(
            query.transpose(1, 2), keys, values, is_causal=True
        )
        return y


class Decode(nn.Module):
    """One query for many keys of a cache that a part is used of, in bfloat16."""

    def __init__(self, heads: int = 8, kv_heads: int = 2, width: int = 32) -> None:
        super().__init__()
        self.out = nn.Linear(heads * width, 16, dtype=torch.bfloat16)
        self.shape = (kv_heads, width)

    def forward(self, query: Tensor, cache: Tensor, count: Tensor) -> Tensor:
        """Query [batch, 1, 256], cache [2, batch, keys, 64], count [batch] -> [batch, 1, 16]."""
        batch, steps, _ = query.shape
        heads = query.view(batch, steps, -1, self.shape[1]).transpose(1, 2)
        keys, values = (x.unflatten(-1, self.shape).transpose(1, 2) for x in cache)
        seen = torch.arange(keys.shape[2]) < count[:, None]
        attended = functional.scaled_dot_product_attention(
            heads, keys, values, attn_mask=seen[:, None, None], enable_gqa=True
        )
        y: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return y


class Plain(nn.Module):
    """Attention without heads, in float16."""

    def forward(self, query: Tensor, memory: Tensor) -> Tensor:
        """Query [batch, queries, 16], memory [batch, keys, 16] -> [batch, queries, 16]."""
        y: Tensor = functional.scaled_dot_product_attention(query, memory, memory)
        return y
