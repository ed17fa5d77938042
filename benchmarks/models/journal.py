"""Whisper's decoder: causal self attention and cross attention to encoder states, tied logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 1865
CONTEXT = 64
STATE = 256
HEADS = 4
LAYERS = 2


class LayerNorm(nn.LayerNorm):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.float()).type(input.dtype)


class Linear(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(input.dtype)
        return functional.linear(input, self.weight.to(input.dtype), bias)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_state: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.query = Linear(n_state, n_state)
        self.key = Linear(n_state, n_state, bias=False)
        self.value = Linear(n_state, n_state)
        self.out = Linear(n_state, n_state)

    def forward(
        self, x: Tensor, xa: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        q = self.query(x)
        k = self.key(x if xa is None else xa)
        v = self.value(x if xa is None else xa)
        wv, qk = self.qkv_attention(q, k, v, mask)
        return self.out(wv), qk

    def qkv_attention(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        _, n_ctx, n_state = q.shape
        scale = (n_state // self.n_head) ** -0.25
        q = q.view(*q.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], self.n_head, -1).permute(0, 2, 3, 1) * scale
        v = v.view(*v.shape[:2], self.n_head, -1).permute(0, 2, 1, 3)
        qk = q @ k
        if mask is not None:
            qk += mask[:n_ctx, :n_ctx]
        qk = qk.float()
        w = functional.softmax(qk, dim=-1).to(q.dtype)
        return (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2), qk.detach()


class ResidualAttentionBlock(nn.Module):
    def __init__(self, n_state: int, n_head: int) -> None:
        super().__init__()
        self.attn = MultiHeadAttention(n_state, n_head)
        self.attn_ln = LayerNorm(n_state)
        self.cross_attn = MultiHeadAttention(n_state, n_head)
        self.cross_attn_ln = LayerNorm(n_state)
        n_mlp = n_state * 4
        self.mlp = nn.Sequential(Linear(n_state, n_mlp), nn.GELU(), Linear(n_mlp, n_state))
        self.mlp_ln = LayerNorm(n_state)

    def forward(self, x: Tensor, xa: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = x + self.attn(self.attn_ln(x), mask=mask)[0]
        crossed, qk = self.cross_attn(self.cross_attn_ln(x), xa)
        x = x + crossed
        x = x + self.mlp(self.mlp_ln(x))
        return x, qk


class TextDecoder(nn.Module):
    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, STATE)
        self.positional_embedding = nn.Parameter(torch.empty(CONTEXT, STATE))
        self.blocks = nn.ModuleList([ResidualAttentionBlock(STATE, HEADS) for _ in range(LAYERS)])
        self.ln = LayerNorm(STATE)
        mask = torch.empty(CONTEXT, CONTEXT).fill_(float("-inf")).triu_(1)
        self.register_buffer("mask", mask, persistent=False)
        nn.init.normal_(self.token_embedding.weight, std=0.06)
        nn.init.normal_(self.positional_embedding, std=0.03)

    def forward(self, tokens: Tensor, xa: Tensor) -> tuple[Tensor, Tensor]:
        x = self.token_embedding(tokens) + self.positional_embedding[: tokens.shape[-1]]
        x = x.to(xa.dtype)
        qks = []
        for block in self.blocks:
            x, qk = block(x, xa, mask=self.mask)
            qks.append(qk)
        x = self.ln(x)
        weight = self.token_embedding.weight.to(x.dtype)
        logits = (x @ torch.transpose(weight, 0, 1)).float()
        # What aligns words to time: the cross attention of some heads, standardized over tokens.
        weights = torch.stack([qk[:, -2:] for qk in qks], dim=1).flatten(1, 2).softmax(dim=-1)
        std, mean = torch.std_mean(weights, dim=-2, keepdim=True, unbiased=False)
        weights = (weights - mean) / std
        return logits, weights.mean(dim=1)


def build() -> nn.Module:
    torch.manual_seed(0)
    module = TextDecoder()
    with torch.no_grad():
        for block in module.blocks:
            assert isinstance(block, ResidualAttentionBlock)
            # Attention that is far from uniform, as after training.
            for attention in (block.attn, block.cross_attn):
                attention.query.weight.mul_(3.0)
                attention.key.weight.mul_(3.0)
    return module.eval()
