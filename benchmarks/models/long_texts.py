"""Long texts, as BigBird: blocks look at their neighbours, at both ends, and at random blocks."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

VOCABULARY = 1024
HIDDEN = 256
HEADS = 4
HEAD = HIDDEN // HEADS
LAYERS = 2
LENGTH, BLOCK, RANDOM = 256, 16, 3
BLOCKS = LENGTH // BLOCK
PENALTY = -10000.0


def random_plan(seed: int) -> Tensor:
    """For each head and each block but the ends, blocks that are not near it."""
    gen = torch.Generator().manual_seed(seed)
    plan = torch.zeros(HEADS, BLOCKS - 2, RANDOM, dtype=torch.int64)
    for h in range(HEADS):
        for i in range(1, BLOCKS - 1):
            near = (0, BLOCKS - 1, i - 1, i, i + 1)
            order = torch.randperm(BLOCKS, generator=gen).tolist()
            plan[h, i - 1] = torch.tensor([block for block in order if block not in near][:RANDOM])
    return plan


def gather_blocks(params: Tensor, indices: Tensor) -> Tensor:
    """Blocks [b, h, n, block, d] that indices [b, h, m, r] name: [b, h, m, r * block, d]."""
    b, h, m, r = indices.shape
    shift = torch.arange(b * h * m * r, device=params.device)
    shift = torch.div(shift, m * r, rounding_mode="floor") * params.shape[2]
    flattened_indices = indices.reshape(-1) + shift
    flattened_params = params.reshape(-1, params.shape[-2], params.shape[-1])
    out = flattened_params.index_select(0, flattened_indices)
    return out.reshape(b, h, m, r * params.shape[3], params.shape[4])


def bmm_nd(a: Tensor, b: Tensor) -> Tensor:
    out = torch.bmm(a.reshape((-1, *a.shape[-2:])), b.reshape((-1, *b.shape[-2:])))
    return out.view((*a.shape[:-2], a.shape[-2], b.shape[-1]))


class BlockSparseAttention(nn.Module):
    plan: Tensor

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key = nn.Linear(HIDDEN, HIDDEN)
        self.value = nn.Linear(HIDDEN, HIDDEN)
        self.rsqrt_d = 1 / math.sqrt(HEAD)
        self.register_buffer("plan", random_plan(seed))

    def blocks(self, x: Tensor) -> Tensor:
        x = x.view(*x.size()[:-1], HEADS, HEAD).permute(0, 2, 1, 3)
        return x.reshape(x.shape[0], HEADS, BLOCKS, BLOCK, HEAD)

    def dense(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """One block of queries [b, h, block, d] and some keys [b, h, m, d]."""
        product = bmm_nd(q, k.transpose(-1, -2)) * self.rsqrt_d
        product += (1.0 - mask) * PENALTY
        return bmm_nd(nn.functional.softmax(product, dim=-1), v).unsqueeze_(2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b = x.shape[0]
        q, k, v = self.blocks(self.query(x)), self.blocks(self.key(x)), self.blocks(self.value(x))

        blocked = mask.view(b, BLOCKS, BLOCK)
        to_mask, from_mask = mask.view(b, 1, 1, LENGTH), mask.view(b, 1, LENGTH, 1)
        near_blocks = torch.cat([blocked[:, 1:-3], blocked[:, 2:-2], blocked[:, 3:-1]], dim=2)
        band_mask = torch.einsum("blq,blk->blqk", blocked[:, 2:-2], near_blocks)
        band_mask.unsqueeze_(1)
        rand_mask = blocked[:, self.plan.flatten()].view(b, HEADS, BLOCKS - 2, RANDOM * BLOCK)
        rand_mask = torch.einsum("blq,bhlk->bhlqk", blocked[:, 1:-1], rand_mask)

        rand_attn = self.plan.unsqueeze(0).expand(b, -1, -1, -1)
        rand_k, rand_v = gather_blocks(k, rand_attn), gather_blocks(v, rand_attn)
        all_k, all_v = (y.reshape(b, HEADS, LENGTH, HEAD) for y in (k, v))

        # The second block, and the last but one: three near blocks, the other end, random ones.
        edges = []
        for at, kept, end in ((0, (0, 1, 2, -1), 1), (-1, (0, -3, -2, -1), -2)):
            some_k = torch.cat([k[:, :, i] for i in kept] + [rand_k[:, :, at]], dim=2)
            some_v = torch.cat([v[:, :, i] for i in kept] + [rand_v[:, :, at]], dim=2)
            parts = [blocked[:, i].view(b, 1, 1, BLOCK) for i in kept]
            seq_pad = torch.cat([*parts, to_mask.new_ones([b, 1, 1, RANDOM * BLOCK])], dim=3)
            ones = rand_mask.new_ones([b, HEADS, BLOCK, 4 * BLOCK])
            rand_pad = torch.cat([ones, rand_mask[:, :, at]], dim=3)
            edges.append(self.dense(q[:, :, end], some_k, some_v, torch.minimum(seq_pad, rand_pad)))
        second, second_last = edges
        first = self.dense(q[:, :, 0], all_k, all_v, to_mask)
        last = self.dense(q[:, :, -1], all_k, all_v, to_mask)

        exp_k = torch.cat([k[:, :, 1:-3], k[:, :, 2:-2], k[:, :, 3:-1]], dim=3)
        exp_v = torch.cat([v[:, :, 1:-3], v[:, :, 2:-2], v[:, :, 3:-1]], dim=3)
        middle = q[:, :, 2:-2]
        inner = bmm_nd(middle, exp_k.transpose(-1, -2)) * self.rsqrt_d
        rand = bmm_nd(middle, rand_k[:, :, 1:-1].transpose(-1, -2)) * self.rsqrt_d
        to_first = torch.einsum("bhlqd,bhkd->bhlqk", middle, k[:, :, 0]) * self.rsqrt_d
        to_last = torch.einsum("bhlqd,bhkd->bhlqk", middle, k[:, :, -1]) * self.rsqrt_d
        inner += (1.0 - band_mask) * PENALTY
        to_first += (1.0 - to_mask[:, :, :, :BLOCK].unsqueeze(3)) * PENALTY
        to_last += (1.0 - to_mask[:, :, :, -BLOCK:].unsqueeze(3)) * PENALTY
        rand += (1.0 - rand_mask[:, :, 1:-1]) * PENALTY
        weights = torch.cat([to_first, inner, rand, to_last], dim=-1)
        weights = nn.functional.softmax(weights, dim=-1)
        context = bmm_nd(weights[..., BLOCK : 4 * BLOCK], exp_v)
        context += bmm_nd(weights[..., 4 * BLOCK : -BLOCK], rand_v[:, :, 1:-1])
        context += torch.einsum("bhlqk,bhkd->bhlqd", weights[..., :BLOCK], v[:, :, 0])
        context += torch.einsum("bhlqk,bhkd->bhlqd", weights[..., -BLOCK:], v[:, :, -1])

        context = torch.cat([first, second, context, second_last, last], dim=2)
        context = context.view((b, HEADS, LENGTH, -1)) * from_mask
        context = torch.transpose(context, 1, 2)
        return context.contiguous().view(b, LENGTH, -1)


class BigBirdLayer(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.attention = BlockSparseAttention(seed)
        self.output_dense = nn.Linear(HIDDEN, HIDDEN)
        self.output_norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.output_norm(self.output_dense(self.attention(x, mask)) + x)
        inner = nn.functional.gelu(self.up(x), approximate="tanh")
        out: Tensor = self.norm(self.down(inner) + x)
        return out


class BigBird(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=0)
        self.position_embeddings = nn.Embedding(LENGTH, HIDDEN)
        self.token_type_embeddings = nn.Embedding(2, HIDDEN)
        self.register_buffer("position_ids", torch.arange(LENGTH).expand((1, -1)))
        self.layer_norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.layers = nn.ModuleList([BigBirdLayer(i) for i in range(LAYERS)])
        self.pooler, self.activation = nn.Linear(HIDDEN, HIDDEN), nn.Tanh()

    def forward(self, attention_mask: Tensor, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        token_type_ids = torch.zeros(input_ids.shape, dtype=torch.long, device=input_ids.device)
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        x += self.position_embeddings(self.position_ids)
        x = self.layer_norm(x)
        for layer in self.layers:
            x = layer(x, attention_mask)
        return x, self.activation(self.pooler(x[:, 0, :]))


def build() -> nn.Module:
    """int64[batch, 256], twice, to float32[batch, 256, 256] and float32[batch, 256]"""
    torch.manual_seed(0)
    return BigBird().eval()
