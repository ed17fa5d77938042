"""Text, as DeepSeek-V2: attention over compressed keys and values, and groups of routed experts."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 1024
HIDDEN = 256
HEADS = 8
Q_RANK, KV_RANK = 96, 64
NOPE, ROPE, VALUE = 32, 16, 32
EXPERTS, GROUPS, TOP_GROUPS, TOP_EXPERTS, SHARED = 16, 4, 2, 3, 2
EXPERT_HIDDEN, DENSE_HIDDEN, ROUTED_SCALE = 96, 512, 4.0
LAYERS = 3
POSITIONS, THETA, YARN_FACTOR, MSCALE = 256, 10000.0, 40.0, 0.707


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(dtype)


def rotate_half(x: Tensor) -> Tensor:
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def apply_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, ids: Tensor) -> list[Tensor]:
    cos = cos[ids].unsqueeze(1)
    sin = sin[ids].unsqueeze(1)
    turned = []
    for x in (q, k):
        b, h, s, d = x.shape
        x = x.view(b, h, s, d // 2, 2).transpose(4, 3).reshape(b, h, s, d)
        turned.append((x * cos) + (rotate_half(x) * sin))
    return turned


class LatentAttention(nn.Module):
    cos_cached: Tensor
    sin_cached: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.q_a_proj = nn.Linear(HIDDEN, Q_RANK, bias=False)
        self.q_a_layernorm = RMSNorm(Q_RANK)
        self.q_b_proj = nn.Linear(Q_RANK, HEADS * (NOPE + ROPE), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(HIDDEN, KV_RANK + ROPE, bias=False)
        self.kv_a_layernorm = RMSNorm(KV_RANK)
        self.kv_b_proj = nn.Linear(KV_RANK, HEADS * (NOPE + VALUE), bias=False)
        self.o_proj = nn.Linear(HEADS * VALUE, HIDDEN, bias=False)
        inv_freq = 1.0 / THETA ** (torch.arange(0, ROPE, 2, dtype=torch.float32) / ROPE)
        freqs = torch.outer(torch.arange(POSITIONS, dtype=torch.float32), inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos_cached", emb.cos(), persistent=False)
        self.register_buffer("sin_cached", emb.sin(), persistent=False)
        mscale = 0.1 * MSCALE * math.log(YARN_FACTOR) + 1.0
        self.softmax_scale = (NOPE + ROPE) ** -0.5 * mscale * mscale

    def forward(self, hidden_states: Tensor, mask: Tensor, position_ids: Tensor) -> Tensor:
        bsz, q_len, _ = hidden_states.size()
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden_states)))
        q = q.view(bsz, q_len, HEADS, NOPE + ROPE).transpose(1, 2)
        q_nope, q_pe = torch.split(q, [NOPE, ROPE], dim=-1)

        compressed_kv, k_pe = self.kv_a_proj_with_mqa(hidden_states).split([KV_RANK, ROPE], dim=-1)
        k_pe = k_pe.view(bsz, q_len, 1, ROPE).transpose(1, 2)
        kv = self.kv_b_proj(self.kv_a_layernorm(compressed_kv))
        kv = kv.view(bsz, q_len, HEADS, NOPE + VALUE).transpose(1, 2)
        k_nope, value_states = torch.split(kv, [NOPE, VALUE], dim=-1)

        cos = self.cos_cached[: value_states.shape[-2]].to(dtype=value_states.dtype)
        sin = self.sin_cached[: value_states.shape[-2]].to(dtype=value_states.dtype)
        q_pe, k_pe = apply_rotary(q_pe, k_pe, cos, sin, position_ids)
        query_states = k_pe.new_empty(bsz, HEADS, q_len, NOPE + ROPE)
        query_states[:, :, :, :NOPE] = q_nope
        query_states[:, :, :, NOPE:] = q_pe
        key_states = k_pe.new_empty(bsz, HEADS, q_len, NOPE + ROPE)
        key_states[:, :, :, :NOPE] = k_nope
        key_states[:, :, :, NOPE:] = k_pe

        weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.softmax_scale
        weights = weights + mask
        weights = functional.softmax(weights, dim=-1, dtype=torch.float32).to(query_states.dtype)
        attn_output = torch.matmul(weights, value_states).transpose(1, 2).contiguous()
        attn_output = attn_output.reshape(bsz, q_len, HEADS * VALUE)
        output: Tensor = self.o_proj(attn_output)
        return output


class MLP(nn.Module):
    def __init__(self, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, inner, bias=False)
        self.up_proj = nn.Linear(HIDDEN, inner, bias=False)
        self.down_proj = nn.Linear(inner, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return down


class MoE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([MLP(EXPERT_HIDDEN) for _ in range(EXPERTS)])
        self.weight = nn.Parameter(torch.randn(EXPERTS, HIDDEN) * 0.1)
        self.shared_experts = MLP(EXPERT_HIDDEN * SHARED)

    def gate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logits = functional.linear(x.type(torch.float32), self.weight.type(torch.float32), None)
        scores = logits.softmax(dim=-1, dtype=torch.float32)
        n = scores.shape[0]
        group_scores = scores.view(n, GROUPS, -1).max(dim=-1).values
        group_idx = torch.topk(group_scores, k=TOP_GROUPS, dim=-1, sorted=False)[1]
        group_mask = torch.zeros_like(group_scores)
        group_mask.scatter_(1, group_idx, 1)
        score_mask = group_mask.unsqueeze(-1).expand(n, GROUPS, EXPERTS // GROUPS).reshape(n, -1)
        tmp_scores = scores.masked_fill(~score_mask.bool(), 0.0)
        weight, idx = torch.topk(tmp_scores, k=TOP_EXPERTS, dim=-1, sorted=False)
        return idx, weight * ROUTED_SCALE

    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states.view(-1, hidden_states.shape[-1])
        topk_idx, topk_weight = self.gate(x)
        # Every expert sees every token: which tokens go where would be a shape.
        gates = x.new_zeros(x.shape[0], EXPERTS).scatter_(1, topk_idx, topk_weight.to(x.dtype))
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            y += expert(x) * gates[:, i, None]
        out: Tensor = y.view(*hidden_states.shape) + self.shared_experts(hidden_states)
        return out


class DecoderLayer(nn.Module):
    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.self_attn = LatentAttention()
        self.mlp = MoE() if layer_idx > 0 else MLP(DENSE_HIDDEN)
        self.input_layernorm = RMSNorm(HIDDEN)
        self.post_attention_layernorm = RMSNorm(HIDDEN)

    def forward(self, x: Tensor, mask: Tensor, position_ids: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), mask, position_ids)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class DeepseekV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([DecoderLayer(i) for i in range(LAYERS)])
        self.norm = RMSNorm(HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        _, seq = input_ids.shape
        position_ids = torch.arange(seq, dtype=torch.long, device=input_ids.device).unsqueeze(0)
        hidden = self.embed_tokens(input_ids)
        mask = torch.full((seq, seq), torch.finfo(hidden.dtype).min)
        cond = torch.arange(mask.size(-1))
        mask.masked_fill_(cond < (cond + 1).view(mask.size(-1), 1), 0)
        causal = mask[None, None, :, :].expand(input_ids.shape[0], 1, seq, seq)
        for layer in self.layers:
            hidden = layer(hidden, causal, position_ids)
        logits: Tensor = self.lm_head(self.norm(hidden))
        return logits.float()


def build() -> nn.Module:
    """int64[batch, 32] to float32[batch, 32, 1024]"""
    torch.manual_seed(0)
    return DeepseekV2().eval()
