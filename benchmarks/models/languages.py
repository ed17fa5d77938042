"""Text of many languages, as BLOOM: scores fall with distance (ALiBi), padding is anywhere."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 1024
HIDDEN = 448
HEADS = 14
HEAD_DIM = HIDDEN // HEADS
LAYERS = 3


def build_alibi_tensor(attention_mask: Tensor, num_heads: int, dtype: torch.dtype) -> Tensor:
    """Biases of [batch * heads, 1, keys]; heads need not be a power of two."""
    batch_size, seq_length = attention_mask.shape
    closest = 2 ** math.floor(math.log2(num_heads))
    base = torch.tensor(2 ** (-(2 ** -(math.log2(closest) - 3))), dtype=torch.float32)
    powers = torch.arange(1, 1 + closest, dtype=torch.int32)
    slopes = torch.pow(base, powers)
    if closest != num_heads:
        extra_base = torch.tensor(2 ** (-(2 ** -(math.log2(2 * closest) - 3))), dtype=torch.float32)
        num_remaining_heads = min(closest, num_heads - closest)
        extra_powers = torch.arange(1, 1 + 2 * num_remaining_heads, 2, dtype=torch.int32)
        slopes = torch.cat([slopes, torch.pow(extra_base, extra_powers)], dim=0)
    # Positions are counted among what is not padding.
    arange_tensor = ((attention_mask.cumsum(dim=-1) - 1) * attention_mask)[:, None, :]
    alibi = slopes[..., None] * arange_tensor
    return alibi.reshape(batch_size * num_heads, 1, seq_length).to(dtype)


def make_causal_mask(shape: torch.Size) -> Tensor:
    """What is True must not be seen."""
    batch_size, target_length = shape
    mask = torch.empty((target_length, target_length), dtype=torch.bool)
    seq_ids = torch.arange(target_length)
    mask[:, 0:] = seq_ids[:, None] < seq_ids[None, :]
    return mask[None, None, :, :].expand(batch_size, 1, target_length, target_length)


def expand_mask(mask: Tensor, tgt_length: int) -> Tensor:
    batch_size, src_length = mask.shape
    expanded_mask = ~(mask[:, None, None, :].to(torch.bool))
    return expanded_mask.expand(batch_size, 1, tgt_length, src_length)


def bloom_gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


def dropout_add(x: Tensor, residual: Tensor, prob: float, training: bool) -> Tensor:
    out = functional.dropout(x, p=prob, training=training)
    out = residual + out
    return out


class BloomAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inv_norm_factor = 1.0 / math.sqrt(HEAD_DIM)
        self.beta = 1.0
        self.query_key_value = nn.Linear(HIDDEN, 3 * HIDDEN, bias=True)
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.attention_dropout = nn.Dropout(0.0)

    def _split_heads(self, fused_qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch_size, seq_length, _ = fused_qkv.shape
        fused_qkv = fused_qkv.view(batch_size, seq_length, HEADS, 3, HEAD_DIM)
        return fused_qkv[..., 0, :], fused_qkv[..., 1, :], fused_qkv[..., 2, :]

    def _merge_heads(self, x: Tensor) -> Tensor:
        batch_size_and_num_heads, seq_length, _ = x.shape
        batch_size = batch_size_and_num_heads // HEADS
        x = x.view(batch_size, HEADS, seq_length, HEAD_DIM)
        x = x.permute(0, 2, 1, 3)
        return x.reshape(batch_size, seq_length, HEADS * HEAD_DIM)

    def forward(self, x: Tensor, residual: Tensor, alibi: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self._split_heads(self.query_key_value(x))
        batch_size, q_length, _, _ = query.shape
        query = query.transpose(1, 2).reshape(batch_size * HEADS, q_length, HEAD_DIM)
        key = key.permute(0, 2, 3, 1).reshape(batch_size * HEADS, HEAD_DIM, q_length)
        value = value.transpose(1, 2).reshape(batch_size * HEADS, q_length, HEAD_DIM)
        matmul_result = alibi.baddbmm(
            batch1=query, batch2=key, beta=self.beta, alpha=self.inv_norm_factor
        )
        scores = matmul_result.view(batch_size, HEADS, q_length, q_length)
        input_dtype = scores.dtype
        if input_dtype == torch.float16:
            scores = scores.to(torch.float)
        weights = torch.masked_fill(scores, mask, torch.finfo(scores.dtype).min)
        probs = functional.softmax(weights, dim=-1, dtype=torch.float32).to(input_dtype)
        probs = self.attention_dropout(probs)
        probs_reshaped = probs.view(batch_size * HEADS, q_length, q_length)
        context_layer = self._merge_heads(torch.bmm(probs_reshaped, value))
        return dropout_add(self.dense(context_layer), residual, 0.0, self.training)


class BloomBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(HIDDEN)
        self.self_attention = BloomAttention()
        self.post_attention_layernorm = nn.LayerNorm(HIDDEN)
        self.dense_h_to_4h = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.dense_4h_to_h = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, hidden_states: Tensor, alibi: Tensor, mask: Tensor) -> Tensor:
        layernorm_output = self.input_layernorm(hidden_states)
        attention_output = self.self_attention(layernorm_output, hidden_states, alibi, mask)
        layernorm_output = self.post_attention_layernorm(attention_output)
        output = self.dense_4h_to_h(bloom_gelu(self.dense_h_to_4h(layernorm_output)))
        return dropout_add(output, attention_output, 0.0, self.training)


class Bloom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, HIDDEN)
        self.word_embeddings_layernorm = nn.LayerNorm(HIDDEN)
        self.h = nn.ModuleList([BloomBlock() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.word_embeddings.weight.data.normal_(mean=0.0, std=0.04)
        self.lm_head.weight = self.word_embeddings.weight

    def forward(self, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        hidden_states = self.word_embeddings_layernorm(self.word_embeddings(input_ids))
        alibi = build_alibi_tensor(attention_mask, HEADS, dtype=hidden_states.dtype)
        causal_mask = make_causal_mask(input_ids.shape)
        expanded_attn_mask = expand_mask(attention_mask, tgt_length=input_ids.shape[1])
        causal_mask = expanded_attn_mask | causal_mask
        for block in self.h:
            hidden_states = block(hidden_states, alibi=alibi, mask=causal_mask)
        logits: Tensor = self.lm_head(self.ln_f(hidden_states))
        return logits


def build() -> nn.Module:
    """int64[batch, 48], twice, to float32[batch, 48, 1024]"""
    torch.manual_seed(0)
    return Bloom().eval()
