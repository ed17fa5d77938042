"""Text, as Qwen3: a Llama whose queries and keys are normed in each head, four queries to a key."""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY = 1024
HIDDEN = 256
HEADS, KV_HEADS, HEAD_DIM = 8, 2, 64
INTERMEDIATE = 768
LAYERS = 3
ROPE_THETA = 1000000.0


class RMSNorm(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class RotaryEmbedding(nn.Module):
    inv_freq: Tensor

    def __init__(self) -> None:
        super().__init__()
        exponents = torch.arange(0, HEAD_DIM, 2, dtype=torch.int64).to(dtype=torch.float) / HEAD_DIM
        self.register_buffer("inv_freq", 1.0 / (ROPE_THETA**exponents), persistent=False)
        self.attention_scaling = 1.0

    @torch.no_grad()
    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        inv_freq_expanded = self.inv_freq[None, :, None].float()
        inv_freq_expanded = inv_freq_expanded.expand(position_ids.shape[0], -1, 1).to(x.device)
        position_ids_expanded = position_ids[:, None, :].float()
        with torch.autocast(device_type=x.device.type, enabled=False):
            freqs = (inv_freq_expanded.float() @ position_ids_expanded.float()).transpose(1, 2)
            emb = torch.cat((freqs, freqs), dim=-1)
            cos = emb.cos() * self.attention_scaling
            sin = emb.sin() * self.attention_scaling
        return cos.to(dtype=x.dtype), sin.to(dtype=x.dtype)


def rotate_half(x: Tensor) -> Tensor:
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


def repeat_kv(hidden_states: Tensor, n_rep: int) -> Tensor:
    batch, heads, slen, head_dim = hidden_states.shape
    if n_rep == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None, :, :].expand(batch, heads, n_rep, slen, head_dim)
    return hidden_states.reshape(batch, heads * n_rep, slen, head_dim)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scaling = HEAD_DIM**-0.5
        self.q_proj = nn.Linear(HIDDEN, HEADS * HEAD_DIM, bias=False)
        self.k_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)
        # Over the dims of a head only.
        self.q_norm = RMSNorm(HEAD_DIM)
        self.k_norm = RMSNorm(HEAD_DIM)

    def forward(
        self, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], mask: Tensor
    ) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, HEAD_DIM)
        query_states = self.q_norm(self.q_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
        key_states = self.k_norm(self.k_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        cos, sin = position_embeddings
        query_states, key_states = apply_rotary_pos_emb(query_states, key_states, cos, sin)

        key_states = repeat_kv(key_states, HEADS // KV_HEADS)
        value_states = repeat_kv(value_states, HEADS // KV_HEADS)
        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.scaling
        attn_weights = attn_weights + mask[:, :, :, : key_states.shape[-2]]
        attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32)
        attn_weights = attn_weights.to(query_states.dtype)
        attn_weights = nn.functional.dropout(attn_weights, p=0.1, training=self.training)
        attn_output = torch.matmul(attn_weights, value_states).transpose(1, 2).contiguous()
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        output: Tensor = self.o_proj(attn_output)
        return output


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = Attention()
        self.gate_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.up_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.down_proj = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)
        self.act_fn = nn.SiLU()
        self.input_layernorm = RMSNorm(HIDDEN)
        self.post_attention_layernorm = RMSNorm(HIDDEN)

    def forward(self, x: Tensor, embeddings: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        residual = x
        x = self.input_layernorm(x)
        x = residual + self.self_attn(x, embeddings, mask)
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return residual + x


class CausalLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN, 0)
        self.layers = nn.ModuleList([DecoderLayer() for _ in range(LAYERS)])
        self.norm = RMSNorm(HIDDEN)
        self.rotary_emb = RotaryEmbedding()
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.embed_tokens.weight.data.normal_(mean=0.0, std=0.05)
        self.lm_head.weight = self.embed_tokens.weight

    def _update_causal_mask(self, attention_mask: Tensor, embeds: Tensor) -> Tensor:
        dtype, length = embeds.dtype, embeds.shape[1]
        min_dtype = torch.finfo(dtype).min
        cache_position = torch.arange(length, device=embeds.device)
        causal_mask = torch.full((length, length), fill_value=min_dtype, dtype=dtype)
        causal_mask = torch.triu(causal_mask, diagonal=1)
        causal_mask *= torch.arange(length) > cache_position.reshape(-1, 1)
        causal_mask = causal_mask[None, None, :, :].expand(embeds.shape[0], 1, -1, -1)
        causal_mask = causal_mask.clone()
        padding = causal_mask[:, :, :, :length] + attention_mask[:, None, None, :]
        padding = padding == 0
        seen = causal_mask[:, :, :, :length].masked_fill(padding, min_dtype)
        causal_mask[:, :, :, :length] = seen
        # Rows that see nothing see everything: some kernels have no softmax of such rows.
        return causal_mask.mul(~torch.all(causal_mask == min_dtype, dim=-1, keepdim=True))

    def forward(self, attention_mask: Tensor, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        hidden_states = self.embed_tokens(input_ids)
        causal_mask = self._update_causal_mask(attention_mask, hidden_states)
        position_embeddings = self.rotary_emb(hidden_states, position_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states, position_embeddings, causal_mask)
        logits: Tensor = self.lm_head(self.norm(hidden_states))
        return logits.float()


def build() -> nn.Module:
    """int64[batch, 64], three times, to float32[batch, 64, 1024]"""
    torch.manual_seed(0)
    return CausalLM().eval()
