"""An encoder-decoder for texts with the sizes of T5-small."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 32128
WIDTH = 512
HEADS = 8
HIDDEN = 2048
LAYERS = 6
BUCKETS = 32
FARTHEST = 128


class Distances(nn.Module):
    """What each head adds to a score, by how far the key is from the query."""

    def __init__(self, both_ways: bool) -> None:
        super().__init__()
        self.both_ways = both_ways
        self.bias = nn.Embedding(BUCKETS, HEADS)

    def forward(self, length: int) -> Tensor:
        position = torch.arange(length)
        ahead = position[None, :] - position[:, None]
        buckets = BUCKETS // 2 if self.both_ways else BUCKETS
        far = ahead.abs() if self.both_ways else (-ahead).clamp(min=0)
        # The nearer half has a bucket for each distance, the others grow with the distance.
        exact = buckets // 2
        growth = (far.clamp(min=1) / exact).log() / math.log(FARTHEST / exact)
        coarse = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
        bucket = torch.where(far < exact, far, coarse)
        if self.both_ways:
            bucket = bucket + (ahead > 0) * buckets
        scores: Tensor = self.bias(bucket).permute(2, 0, 1)[None]
        return scores if self.both_ways else scores.masked_fill(ahead > 0, -torch.inf)


class Attention(nn.Module):
    """Scores are not scaled; what they lack is in the weights of the queries."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key_value = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        nn.init.normal_(self.query.weight, std=WIDTH**-0.5 / (WIDTH // HEADS) ** 0.5)

    def forward(self, x: Tensor, seen: Tensor | None, bias: Tensor | None) -> Tensor:
        """``seen``: what keys and values are made of, where it is not ``x``."""
        y = self.norm(x)
        q = self.query(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        pairs = self.key_value(y if seen is None else seen).unflatten(-1, (2, HEADS, -1))
        k, v = pairs.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)
        result: Tensor = x + self.output(y.transpose(1, 2).flatten(2))
        return result


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.down(functional.relu(self.up(self.norm(x))))
        return result


class Stack(nn.Module):
    """The encoder, or the decoder, which reads the encoder's states."""

    def __init__(self, decodes: bool) -> None:
        super().__init__()
        self.distances = Distances(both_ways=not decodes)
        self.own = nn.ModuleList(Attention() for _ in range(LAYERS))
        self.cross = nn.ModuleList(Attention() for _ in range(LAYERS if decodes else 0))
        self.wide = nn.ModuleList(FeedForward() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)

    def forward(self, x: Tensor, seen: Tensor | None = None) -> Tensor:
        bias = self.distances(x.shape[1])
        for i, (own, wide) in enumerate(zip(self.own, self.wide, strict=True)):
            x = own(x, None, bias)
            if seen is not None:
                x = self.cross[i](x, seen, None)
            x = wide(x)
        states: Tensor = self.norm(x)
        return states


class Translator(nn.Module):
    """A text and the start of its translation to logits for each of the latter's tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder = Stack(decodes=False)
        self.decoder = Stack(decodes=True)

    def forward(self, input_ids: Tensor, decoder_input_ids: Tensor) -> Tensor:
        seen = self.encoder(self.tokens(input_ids))
        states = self.decoder(self.tokens(decoder_input_ids), seen)
        return functional.linear(states * WIDTH**-0.5, self.tokens.weight)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Translator().eval()
