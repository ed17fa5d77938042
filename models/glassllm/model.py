"""glassllm's English model: a Llama-style decoder small enough for quick tests.

0.85 M parameters, a context of 128 tokens, no cache: every call reads the whole sequence. Module
and parameter names are those of the package's ``en.npz``, which also carries the hyperparameters.
The file stores float16; the package computes in float32, and so does this.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import torch
from torch import Tensor, nn


@dataclasses.dataclass(frozen=True)
class Config:
    """Hyperparameters, as ``__config__`` in the weights file has them."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    max_len: int
    rope_base: float
    eps: float
    init_std: float


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, self.gamma.shape, self.gamma, self.eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of neighbouring pairs, over [..., seq, size]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.kv_heads = config.n_heads, config.n_kv_heads
        self.size = config.d_model // config.n_heads
        # The package multiplies from the left, so its matrices are [in, out].
        self.W_Q = nn.Parameter(torch.empty(config.d_model, self.heads * self.size))
        self.W_K = nn.Parameter(torch.empty(config.d_model, self.kv_heads * self.size))
        self.W_V = nn.Parameter(torch.empty(config.d_model, self.kv_heads * self.size))
        self.W_O = nn.Parameter(torch.empty(self.heads * self.size, config.d_model))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q = self.split(x @ self.W_Q, self.heads)
        k = self.split(x @ self.W_K, self.kv_heads)
        v = self.split(x @ self.W_V, self.kv_heads)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return y.transpose(1, 2).flatten(2) @ self.W_O

    def split(self, x: Tensor, heads: int) -> Tensor:
        batch, seq, _ = x.shape
        return x.view(batch, seq, heads, self.size).transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        hidden = 8 * config.d_model // 3
        self.W1 = nn.Parameter(torch.empty(config.d_model, hidden))
        self.W3 = nn.Parameter(torch.empty(config.d_model, hidden))
        self.W2 = nn.Parameter(torch.empty(hidden, config.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return (nn.functional.silu(x @ self.W1) * (x @ self.W3)) @ self.W2


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1 = RMSNorm(config.d_model, config.eps)
        self.attn = Attention(config)
        self.norm2 = RMSNorm(config.d_model, config.eps)
        self.ffn = FeedForward(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), cos, sin)
        x = x + self.ffn(self.norm2(x))
        return x


class GlassLM(nn.Module):
    """input_ids int64[1, seq] -> logits float32[1, seq, vocabulary], one row per position."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.E = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm_f = RMSNorm(config.d_model, config.eps)
        size = config.d_model // config.n_heads
        frequency = config.rope_base ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
        angle = torch.outer(torch.arange(config.max_len, dtype=torch.float64), frequency)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        seq = input_ids.shape[1]
        cos, sin = self.cos[:seq], self.sin[:seq]
        x = nn.functional.embedding(input_ids, self.E)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits: Tensor = self.norm_f(x) @ self.E.T
        return logits


def build(weights: str) -> GlassLM:
    """The entry point: the model with the weights of an ``.npz`` file of the glassllm package."""
    with np.load(weights) as file:
        tensors = {name: file[name] for name in file.files}
    config = Config(**json.loads(str(tensors.pop("__config__"))))
    model = GlassLM(config)
    model.load_state_dict({name: torch.tensor(array) for name, array in tensors.items()})
    return model
