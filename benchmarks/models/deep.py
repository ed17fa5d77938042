"""Decoders that differ in their number of layers only: those of SmolLM2, but narrow.

What is measured is how a build grows with depth, so that the weights may be small.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.smollm2 import model as smollm2
from models.smollm2.model import EPSILON, HEAD_SIZE, HEADS, KV_HEADS, ROPE_BASE

VOCABULARY = 512
WIDTH = 64
FEED_FORWARD = 128
CONTEXT = 256


class Block(smollm2.Block):
    """The layer of SmolLM2, with as many heads."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.attn_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.attn_q = nn.Linear(WIDTH, HEADS * HEAD_SIZE, bias=False)
        self.attn_k = nn.Linear(WIDTH, KV_HEADS * HEAD_SIZE, bias=False)
        self.attn_v = nn.Linear(WIDTH, KV_HEADS * HEAD_SIZE, bias=False)
        self.attn_output = nn.Linear(HEADS * HEAD_SIZE, WIDTH, bias=False)
        self.ffn_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.ffn_gate = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.ffn_up = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.ffn_down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)


class Decoder(smollm2.SmolLM2):
    """SmolLM2 with other sizes, and a cache of its own."""

    def __init__(self, layers: int) -> None:
        nn.Module.__init__(self)
        self.token_embd = nn.Embedding(VOCABULARY, WIDTH)
        self.blk = nn.ModuleList(Block() for _ in range(layers))
        self.output_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        frequency = ROPE_BASE ** -(torch.arange(0, HEAD_SIZE, 2, dtype=torch.float64) / HEAD_SIZE)
        angle = torch.outer(torch.arange(CONTEXT, dtype=torch.float64), frequency)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)
        cache = torch.zeros(layers, 2, CONTEXT, KV_HEADS, HEAD_SIZE)
        self.register_buffer("past_key_values", cache, persistent=False)


def _build(layers: int) -> nn.Module:
    torch.manual_seed(0)
    return Decoder(layers).eval()


def build_12() -> nn.Module:
    return _build(12)


def build_30() -> nn.Module:
    return _build(30)


def build_80() -> nn.Module:
    return _build(80)


def sample_inputs(seq: int = 5, total: int = 9) -> tuple[Tensor, ...]:
    """Inputs as they come in use: ``seq`` new tokens at the end of ``total``."""
    seq = min(seq, total)
    generator = torch.Generator().manual_seed(seq * CONTEXT + total)
    return (
        torch.randint(VOCABULARY, (1, seq), generator=generator),
        torch.ones(1, total, dtype=torch.int64),
        torch.arange(total - seq, total),
    )
