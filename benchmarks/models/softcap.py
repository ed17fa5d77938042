"""Words as Gemma 2 first reads them: scores bounded by a tanh, a window in every second layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 8000
WIDTH = 384
HEADS = 8
KEYS = 4
SIZE = 64
HIDDEN = 4 * WIDTH
LENGTH = 128
WINDOW = 32
LAYERS = 4
SCORE_BOUND = 50.0
WORD_BOUND = 30.0


class Norm(nn.Module):
    """Divides by the root of the mean square; its weights say how far from 1 they scale."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * (1.0 + self.weight.float())).type_as(x)


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x[..., : SIZE // 2], x[..., SIZE // 2 :]
    return x * cos + torch.cat((-second, first), -1) * sin


def repeat(x: Tensor) -> Tensor:
    """Each head of keys or values serves as many of queries."""
    x = x[:, :, None].expand(-1, -1, HEADS // KEYS, -1, -1)
    return x.reshape(-1, HEADS, LENGTH, SIZE)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.key, self.value = (nn.Linear(WIDTH, KEYS * SIZE, bias=False) for _ in range(2))
        self.outputs = nn.Linear(HEADS * SIZE, WIDTH, bias=False)
        # Scores large enough for their bound to matter.
        for layer in (self.query, self.key):
            nn.init.normal_(layer.weight, std=2 * WIDTH**-0.5)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (
            layer(x).view(x.shape[0], LENGTH, -1, SIZE).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = turn(query, cos, sin), turn(key, cos, sin)
        key, value = repeat(key), repeat(value)
        scores = torch.matmul(query, key.transpose(2, 3)) * SIZE**-0.5
        scores = torch.tanh(scores / SCORE_BOUND) * SCORE_BOUND + mask
        weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        y = torch.matmul(weights, value).transpose(1, 2).contiguous()
        result: Tensor = self.outputs(y.reshape(x.shape[0], LENGTH, -1))
        return result


class Layer(nn.Module):
    """Attention and a gated layer, each between two norms."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.norms = nn.ModuleList(Norm() for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.norms[1](self.attention(self.norms[0](x), cos, sin, mask))
        y = self.norms[2](x)
        y = self.down(functional.gelu(self.gate(y), approximate="tanh") * self.up(y))
        result: Tensor = x + self.norms[3](y)
        return result


class Softcap(nn.Module):
    """int64[batch, 128] to float32[batch, 8000], the scores of the next word"""

    rates: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        nn.init.normal_(self.words.weight, std=WIDTH**-0.5)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, SIZE, 2) / SIZE))

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words) * WIDTH**0.5
        places = torch.arange(LENGTH, device=words.device)
        angles = torch.outer(places.float(), self.rates)
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos(), angles.sin()
        unseen = x.new_full((LENGTH, LENGTH), torch.finfo(x.dtype).min)
        far = places[:, None] - places
        mask = torch.where(far >= 0, torch.zeros_like(unseen), unseen)
        window = torch.where(far < WINDOW, mask, unseen)
        for number, layer in enumerate(self.layers):
            x = layer(x, cos, sin, mask if number % 2 else window)
        scores = functional.linear(self.norm(x[:, -1]), self.words.weight)
        return torch.tanh(scores / WORD_BOUND) * WORD_BOUND


def build() -> nn.Module:
    torch.manual_seed(0)
    return Softcap().eval()
