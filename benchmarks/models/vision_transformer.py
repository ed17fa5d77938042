"""ViT-S/16: a vision transformer for pictures of 224 x 224."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 384
HEADS = 6
LAYERS = 12
PATCH = 16
PATCHES = (224 // PATCH) ** 2
CLASSES = 1000


class Block(nn.Module):
    """Attention and feed-forward network, each behind a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(self.norm1(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        x = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return x


class VisionTransformer(nn.Module):
    """float32[batch, 3, 224, 224] to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, PATCHES + 1, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        logits: Tensor = self.head(self.norm(self.blocks(x)[:, 0]))
        return logits


def build() -> nn.Module:
    torch.manual_seed(0)
    return VisionTransformer().eval()
