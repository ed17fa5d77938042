"""Text, as GPT-NeoX: attention beside the layers, a quarter of each head turned, and a cache."""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY = 1024
HIDDEN = 384
HEADS = 6
HEAD_SIZE = HIDDEN // HEADS
ROTARY = HEAD_SIZE // 4
LAYERS = 3
MAX_POSITIONS = 128


class RotaryEmbedding(nn.Module):
    inv_freq: Tensor

    def __init__(self, dim: int, base: float = 10000.0) -> None:
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        inv_freq = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        freqs = (inv_freq @ position_ids[:, None, :].float()).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(dtype=x.dtype), emb.sin().to(dtype=x.dtype)


def rotate_half(x: Tensor) -> Tensor:
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class NeoXAttention(nn.Module):
    bias: Tensor

    def __init__(self) -> None:
        super().__init__()
        causal = torch.tril(torch.ones((MAX_POSITIONS, MAX_POSITIONS), dtype=torch.bool))
        self.register_buffer("bias", causal.view(1, 1, MAX_POSITIONS, MAX_POSITIONS))
        self.norm_factor = HEAD_SIZE**-0.5
        self.query_key_value = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.dense = nn.Linear(HIDDEN, HIDDEN)

    def forward(
        self, hidden_states: Tensor, past: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor]:
        # [batch, seq, hidden] --> [batch, seq, heads, 3 * head_size]
        qkv = self.query_key_value(hidden_states)
        qkv = qkv.view((*qkv.size()[:-1], HEADS, 3 * HEAD_SIZE))
        query = qkv[..., :HEAD_SIZE].permute(0, 2, 1, 3)
        key = qkv[..., HEAD_SIZE : 2 * HEAD_SIZE].permute(0, 2, 1, 3)
        value = qkv[..., 2 * HEAD_SIZE :].permute(0, 2, 1, 3)

        query_rot, query_pass = query[..., :ROTARY], query[..., ROTARY:]
        key_rot, key_pass = key[..., :ROTARY], key[..., ROTARY:]
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        query = torch.cat(((query_rot * cos) + (rotate_half(query_rot) * sin), query_pass), dim=-1)
        key = torch.cat(((key_rot * cos) + (rotate_half(key_rot) * sin), key_pass), dim=-1)

        key = torch.cat((past[0], key), dim=-2)
        value = torch.cat((past[1], value), dim=-2)
        attn_output = self._attn(query, key, value)
        # [batch, heads, seq, head_size] --> [batch, seq, hidden]
        attn_output = attn_output.permute(0, 2, 1, 3).contiguous()
        attn_output = attn_output.view(attn_output.size(0), attn_output.size(1), HIDDEN)
        return self.dense(attn_output), torch.stack((key, value))

    def _attn(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        batch_size, heads, query_length, head_size = query.size()
        key_length = key.size(-2)
        causal_mask = self.bias[:, :, key_length - query_length : key_length, :key_length]

        query = query.reshape(batch_size * heads, query_length, head_size)
        key = key.view(batch_size * heads, key_length, head_size)
        attn_scores = torch.zeros(
            batch_size * heads, query_length, key_length, dtype=query.dtype, device=key.device
        )
        attn_scores = torch.baddbmm(
            attn_scores, query, key.transpose(1, 2), beta=1.0, alpha=self.norm_factor
        )
        attn_scores = attn_scores.view(batch_size, heads, query_length, key_length)
        mask_value = torch.finfo(attn_scores.dtype).min
        mask = torch.tensor(mask_value, dtype=attn_scores.dtype).to(attn_scores.device)
        attn_scores = torch.where(causal_mask, attn_scores, mask)
        attn_weights = nn.functional.softmax(attn_scores, dim=-1).to(value.dtype)
        return torch.matmul(attn_weights, value)


class NeoXLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(HIDDEN, eps=1e-5)
        self.post_attention_layernorm = nn.LayerNorm(HIDDEN, eps=1e-5)
        self.post_attention_dropout = nn.Dropout(0.1)
        self.post_mlp_dropout = nn.Dropout(0.1)
        self.attention = NeoXAttention()
        self.dense_h_to_4h = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.dense_4h_to_h = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(
        self, hidden_states: Tensor, past: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor]:
        attn_output, present = self.attention(self.input_layernorm(hidden_states), past, cos, sin)
        attn_output = self.post_attention_dropout(attn_output)
        inner = self.dense_h_to_4h(self.post_attention_layernorm(hidden_states))
        mlp_output = self.dense_4h_to_h(nn.functional.gelu(inner))
        mlp_output = self.post_mlp_dropout(mlp_output)
        return mlp_output + attn_output + hidden_states, present


class NeoX(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_in = nn.Embedding(VOCABULARY, HIDDEN)
        self.emb_dropout = nn.Dropout(0.0)
        self.rotary_emb = RotaryEmbedding(ROTARY)
        self.layers = nn.ModuleList([NeoXLayer() for _ in range(LAYERS)])
        self.final_layer_norm = nn.LayerNorm(HIDDEN, eps=1e-5)
        self.embed_out = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, input_ids: Tensor, past_key_values: Tensor) -> tuple[Tensor, Tensor]:
        past_length = past_key_values.size(-2)
        seq_length = input_ids.size(-1)
        position_ids = torch.arange(
            past_length, seq_length + past_length, dtype=torch.long, device=input_ids.device
        )
        position_ids = position_ids.unsqueeze(0)
        hidden_states = self.emb_dropout(self.embed_in(input_ids))
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        presents: tuple[Tensor, ...] = ()
        for layer, past in zip(self.layers, past_key_values, strict=True):
            hidden_states, present = layer(hidden_states, past, cos, sin)
            presents = (*presents, present)
        hidden_states = self.final_layer_norm(hidden_states)
        return self.embed_out(hidden_states), torch.stack(presents)


def build() -> nn.Module:
    """int64[batch, 16] and float32[3, 2, batch, 6, 48, 64] to logits, and a cache of 64"""
    torch.manual_seed(0)
    return NeoX().eval()
