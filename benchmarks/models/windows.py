"""Long texts, as Longformer: words look at those near them, in chunks that overlap by half."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 20000
WIDTH = 256
HEADS = 4
SIZE = WIDTH // HEADS
LENGTH = 512
REACH = 64
LAYERS = 3


def near_scores(query: Tensor, key: Tensor) -> Tensor:
    """The scores of each word with those at -REACH..REACH of it; -inf where there are none."""
    query, key = (x.unfold(1, 2 * REACH, REACH) for x in (query, key))
    chunks = torch.einsum("rcdx,rcdy->rcxy", query, key)
    rows, count = chunks.shape[:2]
    # One more row, seen as one more column: diagonals become columns.
    skewed = functional.pad(chunks, (0, 0, 0, 1)).view(rows, count, 2 * REACH, 2 * REACH + 1)
    scores = skewed.new_zeros(rows, count + 1, REACH, 2 * REACH + 1)
    scores[:, :-1, :, REACH:] = skewed[:, :, :REACH, : REACH + 1]
    scores[:, -1, :, REACH:] = skewed[:, -1, REACH:, : REACH + 1]
    scores[:, 1:, :, :REACH] = skewed[:, :, REACH - 1 : -1, REACH + 1 :]
    scores[:, 0, 1:, 1:REACH] = skewed[:, 0, : REACH - 1, REACH + 2 :]
    scores = scores.view(rows, LENGTH, 2 * REACH + 1)
    outside = scores.new_ones(REACH, REACH + 1).tril().flip(0).bool()
    scores[:, :REACH, : REACH + 1].masked_fill_(outside, -torch.inf)
    scores[:, -REACH:, REACH:].masked_fill_(outside.flip((0, 1)), -torch.inf)
    return scores


def near_sums(weights: Tensor, value: Tensor) -> Tensor:
    """The sum of the values at -REACH..REACH of each word."""
    value = functional.pad(value, (0, 0, REACH, REACH))
    rows, count = value.shape[0], LENGTH // REACH
    first, second, third = value.stride()
    chunks = value.as_strided(
        (rows, count, 3 * REACH, SIZE), (first, REACH * second, second, third)
    )
    skewed = weights.view(rows, count, REACH, 2 * REACH + 1)
    skewed = functional.pad(skewed, (0, REACH + 1)).view(rows, count, -1)[..., :-REACH]
    skewed = skewed.view(rows, count, REACH, 3 * REACH + 1)[..., :-1]
    return torch.einsum("rcxy,rcyd->rcxd", skewed, chunks)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        # Scores large enough for words to look at some of the others.
        for layer in (self.query, self.key):
            nn.init.normal_(layer.weight, std=WIDTH**-0.5)
        self.outputs = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        query, key, value = (
            layer(x).view(batch, LENGTH, HEADS, SIZE).transpose(1, 2).flatten(0, 1)
            for layer in (self.query, self.key, self.value)
        )
        weights = near_scores(query / SIZE**0.5, key).softmax(-1)
        y = near_sums(weights, value).reshape(batch, HEADS, LENGTH, SIZE)
        x = self.norms[0](x + self.outputs(y.transpose(1, 2).reshape(batch, LENGTH, WIDTH)))
        result: Tensor = self.norms[1](x + self.layers(x))
        return result


class Windows(nn.Module):
    """int64[batch, 512] to float32[batch, 512, 256]"""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))

    def forward(self, words: Tensor) -> Tensor:
        places = torch.arange(LENGTH, device=words.device)
        result: Tensor = self.layers(self.norm(self.words(words) + self.places(places)))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Windows().eval()
