"""Blocks as MViTv2 has: attention whose queries, keys and values are pooled by convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

HEAD = 96
SIDE = 16
CLASSES = 1000
# Channels before and after, heads, side of the image, strides of queries and of keys and values.
BLOCKS = (
    (192, 192, 2, 16, 1, 2),
    (192, 192, 2, 16, 1, 2),
    (192, 384, 4, 16, 2, 1),
    (384, 384, 4, 8, 1, 1),
)


class Pool(nn.Module):
    """Convolves the places of each head; the token before them stays as it is."""

    def __init__(self, side: int, stride: int) -> None:
        super().__init__()
        self.side = side
        self.filters = nn.Conv2d(HEAD, HEAD, 3, stride, 1, groups=HEAD, bias=False)
        self.norm = nn.LayerNorm(HEAD)

    def forward(self, x: Tensor) -> Tensor:
        batch, heads, _, _ = x.shape
        kind, x = x[:, :, :1], x[:, :, 1:]
        x = x.reshape(batch * heads, self.side, self.side, HEAD).permute(0, 3, 1, 2).contiguous()
        x = self.filters(x).reshape(batch, heads, HEAD, -1).transpose(2, 3)
        result: Tensor = self.norm(torch.cat((kind, x), 2))
        return result


class Attention(nn.Module):
    places: Tensor

    def __init__(
        self, inputs: int, outputs: int, heads: int, side: int, step: int, other: int
    ) -> None:
        super().__init__()
        self.heads, self.queries, self.keys = heads, side // step, side // other
        self.inputs, self.outputs = nn.Linear(inputs, 3 * outputs), nn.Linear(outputs, outputs)
        self.pools = nn.ModuleList(Pool(side, stride) for stride in (step, other, other))
        count = 2 * max(self.queries, self.keys) - 1
        self.rows = nn.Parameter(torch.randn(count, HEAD) * 0.1)
        self.columns = nn.Parameter(torch.randn(count, HEAD) * 0.1)
        of_query = torch.arange(self.queries)[:, None] * max(self.keys // self.queries, 1)
        of_key = torch.arange(self.keys) * max(self.queries // self.keys, 1)
        self.register_buffer("places", of_query - of_key + of_key[-1])

    def forward(self, x: Tensor) -> Tensor:
        batch, count, _ = x.shape
        parts = self.inputs(x).reshape(batch, count, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4)
        q, k, v = (pool(part) for pool, part in zip(self.pools, parts.unbind(0), strict=True))
        scores = (q * HEAD**-0.5) @ k.transpose(-2, -1)
        image = q[:, :, 1:].reshape(batch, self.heads, self.queries, self.queries, HEAD)
        rows = torch.einsum("byhwc,hkc->byhwk", image, self.rows[self.places])
        columns = torch.einsum("byhwc,wkc->byhwk", image, self.columns[self.places])
        sizes = (self.queries, self.queries, self.keys, self.keys)
        near = scores[:, :, 1:, 1:].reshape(batch, self.heads, *sizes)
        near = near + rows[..., :, None] + columns[..., None, :]
        scores[:, :, 1:, 1:] = near.view(batch, self.heads, self.queries**2, self.keys**2)
        y = scores.softmax(-1) @ v
        y[:, :, 1:] += q[:, :, 1:]
        result: Tensor = self.outputs(y.transpose(1, 2).reshape(batch, -1, self.heads * HEAD))
        return result


class Block(nn.Module):
    def __init__(
        self, inputs: int, outputs: int, heads: int, side: int, step: int, other: int
    ) -> None:
        super().__init__()
        self.side, self.step = side, step
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in (inputs, outputs))
        self.attention = Attention(inputs, outputs, heads, side, step, other)
        self.wider = nn.Linear(inputs, outputs) if inputs != outputs else None
        self.layers = nn.Sequential(
            nn.Linear(outputs, 4 * outputs), nn.GELU(), nn.Linear(4 * outputs, outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        if self.wider is not None:
            x = self.wider(y)
        if self.step > 1:
            image = x[:, 1:].transpose(1, 2).reshape(x.shape[0], -1, self.side, self.side)
            image = functional.max_pool2d(image, self.step + 1, self.step, 1)
            x = torch.cat((x[:, :1], image.flatten(2).transpose(1, 2)), 1)
        x = x + self.attention(y)
        result: Tensor = x + self.layers(self.norms[1](x))
        return result


class Pooled(nn.Module):
    """float32[batch, 3, 64, 64] to float32[batch, 1000]"""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, BLOCKS[0][0], 7, 4, 3)
        self.kind = nn.Parameter(torch.randn(1, 1, BLOCKS[0][0]) * 0.02)
        self.blocks = nn.Sequential(*(Block(*sizes) for sizes in BLOCKS))
        self.norm = nn.LayerNorm(BLOCKS[-1][1])
        self.head = nn.Linear(BLOCKS[-1][1], CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patches(pictures).flatten(2).transpose(1, 2)
        x = torch.cat((self.kind.expand(x.shape[0], -1, -1), x), 1)
        result: Tensor = self.head(self.norm(self.blocks(x))[:, 0])
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Pooled().eval()
