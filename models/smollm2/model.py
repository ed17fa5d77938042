"""SmolLM2-135M-Instruct: a Llama-style decoder with a cache of keys and values.

One program serves prefill (many tokens) and decode (one token): it writes the new keys and values
into the cache in place, then attends over the filled part of it. Nothing of the cache is
recomputed, and none of it is copied. ``SmolLM2`` keeps the cache in a buffer, so that each session
of the compiled model has one; ``Decoder`` takes it as an argument.

The parameters carry the names that the GGUF file gives them, so loading needs no mapping.

Everything is float32. The file holds 4- and 8-bit blocks, so bfloat16 would save memory but round
a second time; the portable CPU baseline has no bfloat16 arithmetic; and greedy decoding has to
pick the same token as eager PyTorch, which bfloat16's 8 bits of mantissa leave to chance.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.smollm2.gguf_weights import read_gguf

VOCABULARY = 49152
WIDTH = 576
FEED_FORWARD = 1536
LAYERS = 30
HEADS = 9
KV_HEADS = 3
QUERIES_PER_KV = HEADS // KV_HEADS
HEAD_SIZE = WIDTH // HEADS
CONTEXT = 2048
ROPE_BASE = 100_000.0
EPSILON = 1e-5

CACHE_SHAPE = (LAYERS, 2, CONTEXT, KV_HEADS, HEAD_SIZE)


class Rope(NamedTuple):
    """Rotary position embedding: the cosines and sines of the new tokens, [seq, HEAD_SIZE / 2]."""

    cos: Tensor
    sin: Tensor

    def rotate(self, x: Tensor) -> Tensor:
        """Rotates [..., seq, HEAD_SIZE].

        A pair is two neighbours (0, 1), (2, 3), ...: GGUF files order the rows of the query and
        key projections so. The transformers library pairs (0, 32), (1, 33), ... instead.
        """
        even, odd = x[..., 0::2], x[..., 1::2]
        pairs = (even * self.cos - odd * self.sin, even * self.sin + odd * self.cos)
        return torch.stack(pairs, dim=-1).flatten(-2)


class LayerCache(NamedTuple):
    """One layer's part of the key-value cache, and where the new tokens go in it."""

    past_key_values: Tensor
    layer: int
    position: Tensor

    def write(self, k: Tensor, v: Tensor) -> None:
        """Stores the new keys and values, each [seq, KV_HEADS, HEAD_SIZE]."""
        # Every leading dimension is indexed by a tensor, none by an integer: an integer makes a
        # view, and Inductor copies the whole layer for a write through a view of an input.
        layer = torch.full((1, 1), self.layer)
        which = torch.arange(2)[:, None]
        self.past_key_values[layer, which, self.position] = torch.stack((k, v))

    def read(self, total: int) -> tuple[Tensor, Tensor]:
        """Views of the first ``total`` keys and values, each [1, KV_HEADS, total, HEAD_SIZE]."""
        k = self.past_key_values[self.layer, 0, :total].transpose(0, 1)
        v = self.past_key_values[self.layer, 1, :total].transpose(0, 1)
        return k[None], v[None]


class Block(nn.Module):
    """Attention and feed-forward network, each behind an RMSNorm and added to the residual."""

    def __init__(self) -> None:
        super().__init__()
        self.attn_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.attn_q = nn.Linear(WIDTH, HEADS * HEAD_SIZE, bias=False)
        self.attn_k = nn.Linear(WIDTH, KV_HEADS * HEAD_SIZE, bias=False)
        self.attn_v = nn.Linear(WIDTH, KV_HEADS * HEAD_SIZE, bias=False)
        self.attn_output = nn.Linear(HEADS * HEAD_SIZE, WIDTH, bias=False)
        self.ffn_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.ffn_gate = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.ffn_up = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.ffn_down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)

    def forward(self, x: Tensor, rope: Rope, mask: Tensor, cache: LayerCache) -> Tensor:
        """[seq, WIDTH] to the same; ``mask`` [QUERIES_PER_KV * seq, total] is added to scores."""
        x = x + self.attention(self.attn_norm(x), rope, mask, cache)
        h = self.ffn_norm(x)
        x = x + self.ffn_down(nn.functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return x

    def attention(self, x: Tensor, rope: Rope, mask: Tensor, cache: LayerCache) -> Tensor:
        """Attention of the new tokens over the cache, which gets their keys and values first."""
        seq, total = x.shape[0], mask.shape[1]
        k = rope.rotate(self.attn_k(x).view(seq, KV_HEADS, HEAD_SIZE).transpose(0, 1))
        v = self.attn_v(x).view(seq, KV_HEADS, HEAD_SIZE)
        cache.write(k.transpose(0, 1), v)

        # The query heads that share a key head become rows of one attention problem, so that K and
        # V are read where they lie: to expand them to HEADS heads would copy the cache each time.
        q = self.attn_q(x).view(seq, KV_HEADS, QUERIES_PER_KV, HEAD_SIZE).permute(1, 2, 0, 3)
        q = rope.rotate(q).view(1, KV_HEADS, QUERIES_PER_KV * seq, HEAD_SIZE)
        k, v = cache.read(total)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.view(KV_HEADS, QUERIES_PER_KV, seq, HEAD_SIZE)
        x = self.attn_output(torch.cat([head for group in y for head in group], dim=-1))
        return x


class Decoder(nn.Module):
    """The decoder: token ids and the cache in, logits of the token that comes next out."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.token_embd = nn.Embedding(VOCABULARY, WIDTH)
        self.blk = nn.ModuleList(Block() for _ in range(LAYERS))
        self.output_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        frequency = ROPE_BASE ** -(torch.arange(0, HEAD_SIZE, 2, dtype=torch.float64) / HEAD_SIZE)
        angle = torch.outer(torch.arange(CONTEXT, dtype=torch.float64), frequency)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        cache_position: Tensor,
        past_key_values: Tensor,
    ) -> Tensor:
        """Appends ``seq`` tokens to the sequence and predicts the next one.

        Args:
          input_ids: int64[1, seq], the new tokens.
          attention_mask: int64[1, total], 1 for every token that may be seen, 0 for padding.
            ``total`` says how much of the cache is in use once the new tokens are in it.
          cache_position: int64[seq], the place of each new token in the sequence, each below
            ``total``; first prompt: 0 .. seq - 1, then one after the other.
          past_key_values: float32[30, 2, 2048, 3, 64], keys and values by layer; written in
            place. What it holds from ``total`` on is not read, so a new sequence may reuse it.

        Returns:
          float32[1, 49152], the logits after the last of the new tokens. (Those after the other
          tokens are not computed: for a prompt of 2,048 they would be 400 MB.)
        """
        x = self.token_embd(input_ids[0])
        rope = Rope(self.cos[cache_position], self.sin[cache_position])
        mask = self.visible(attention_mask, cache_position)
        for layer, block in enumerate(self.blk):
            x = block(x, rope, mask, LayerCache(past_key_values, layer, cache_position))
        # Input and output embedding are one matrix.
        return nn.functional.linear(self.output_norm(x[-1:]), self.token_embd.weight)

    def visible(self, attention_mask: Tensor, cache_position: Tensor) -> Tensor:
        """[QUERIES_PER_KV * seq, total]: 0 where the query may look at the key, else -inf."""
        key = torch.arange(attention_mask.shape[1], device=attention_mask.device)
        seen = (key <= cache_position[:, None]) & (attention_mask != 0)
        mask = torch.where(seen, 0.0, -torch.inf)
        return mask.repeat(QUERIES_PER_KV, 1)


class SmolLM2(Decoder):
    """The decoder with a cache of its own, which a call reads and writes."""

    past_key_values: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("past_key_values", torch.zeros(CACHE_SHAPE), persistent=False)

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor, cache_position: Tensor
    ) -> Tensor:
        """As Decoder.forward(): int64[1, seq], int64[1, total], int64[seq] -> float32[1, 49152]."""
        return super().forward(input_ids, attention_mask, cache_position, self.past_key_values)


def build(weights: str) -> SmolLM2:
    """The entry point: the model with the weights of SmolLM2-135M-Instruct's GGUF file."""
    model = SmolLM2()
    model.load_state_dict(read_gguf(weights), assign=True)
    return model.eval()


def build_decoder(weights: str) -> Decoder:
    """The same without a cache of its own."""
    decoder = Decoder()
    decoder.load_state_dict(read_gguf(weights), assign=True)
    return decoder.eval()


def sample_inputs(seq: int = 5, total: int = 9) -> tuple[Tensor, ...]:
    """Inputs as they come in use: ``seq`` new tokens at the end of ``total``."""
    return decoder_inputs(seq, total)[:3]


def decoder_inputs(seq: int = 5, total: int = 9) -> tuple[Tensor, ...]:
    """The same with a cache that is filled up to the new tokens.

    Args:
      seq: the number of new tokens; more than ``total`` cannot be and counts as ``total``.
      total: the number of tokens in the cache afterwards.
    """
    seq = min(seq, total)
    generator = torch.Generator().manual_seed(seq * CONTEXT + total)
    past = total - seq
    cache = torch.zeros(CACHE_SHAPE)
    cache[:, :, :past] = torch.randn(LAYERS, 2, past, KV_HEADS, HEAD_SIZE, generator=generator)
    return (
        torch.randint(VOCABULARY, (1, seq), generator=generator),
        torch.ones(1, total, dtype=torch.int64),
        torch.arange(past, total),
        cache,
    )
