"""Pictures and texts that belong together, as CLIP: two encoders, whose results are compared."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 10000
LENGTH = 32
PATCH = 32
SIZE = 224
EMBEDDING = 256


class Gelu(nn.Module):
    """The cheap approximation that CLIP was trained with."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class Layer(nn.Module):
    """Attention, and two linear layers."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.inputs = nn.Linear(width, 3 * width)
        self.outputs = nn.Linear(width, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), Gelu(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.inputs(self.norms[0](x)).view(*x.shape[:2], 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.outputs(y.transpose(1, 2).flatten(2))
        result: Tensor = x + self.layers(self.norms[1](x))
        return result


def layers(count: int, width: int, heads: int, causal: bool) -> nn.Sequential:
    return nn.Sequential(*(Layer(width, heads, causal) for _ in range(count)))


class Search(nn.Module):
    """float32[batch, 3, 224, 224] and int64[4, 32] to float32[batch, 4]"""

    def __init__(self) -> None:
        super().__init__()
        pictures, texts = 384, 256
        self.patches = nn.Conv2d(3, pictures, PATCH, PATCH, bias=False)
        self.kind = nn.Parameter(torch.randn(1, 1, pictures) * 0.02)
        count = (SIZE // PATCH) ** 2 + 1
        self.picture_places = nn.Parameter(torch.randn(1, count, pictures) * 0.02)
        self.of_pictures = layers(4, pictures, 6, causal=False)
        self.words = nn.Embedding(WORDS, texts)
        self.word_places = nn.Parameter(torch.randn(1, LENGTH, texts) * 0.02)
        self.of_texts = layers(4, texts, 4, causal=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in (pictures, texts))
        self.heads = nn.ModuleList(
            nn.Linear(width, EMBEDDING, bias=False) for width in (pictures, texts)
        )

    def forward(self, images: Tensor, words: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.kind.expand(x.shape[0], -1, -1), x], 1) + self.picture_places
        of_pictures = self.heads[0](self.norms[0](self.of_pictures(x)[:, 0]))
        y = self.of_texts(self.words(words) + self.word_places)
        ends = words.argmax(-1)
        y = y[torch.arange(y.shape[0], device=y.device), ends]
        of_texts = self.heads[1](self.norms[1](y))
        of_pictures = functional.normalize(of_pictures, dim=-1)
        return 100 * of_pictures @ functional.normalize(of_texts, dim=-1).T


def build() -> nn.Module:
    torch.manual_seed(0)
    return Search().eval()
