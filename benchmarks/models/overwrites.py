"""Text, as Gated DeltaNet (Qwen3-Next): a memory that is overwritten by a delta rule, in chunks."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 1024
HIDDEN = 256
KEY_HEADS, VALUE_HEADS = 2, 4
KEY_DIM, VALUE_DIM = 32, 64
KEYS, VALUES = KEY_HEADS * KEY_DIM, VALUE_HEADS * VALUE_DIM
INTERMEDIATE = 512
TAPS = 4
LAYERS = 2
CHUNK = 32


def l2norm(x: Tensor, dim: int = -1, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt((x * x).sum(dim=dim, keepdim=True) + eps)


def chunk_gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, chunk_size: int = CHUNK
) -> tuple[Tensor, Tensor]:
    """[batch, length, heads, dim] of q, k and v, and [batch, length, heads] of decay and beta."""
    initial_dtype = query.dtype
    query, key = l2norm(query), l2norm(key)
    query, key, value, beta, g = [
        x.transpose(1, 2).contiguous().to(torch.float32) for x in (query, key, value, beta, g)
    ]
    batch_size, num_heads, length, k_dim = key.shape
    v_dim = value.shape[-1]
    pad_size = (chunk_size - length % chunk_size) % chunk_size
    query, key, value = (functional.pad(x, (0, 0, 0, pad_size)) for x in (query, key, value))
    beta, g = functional.pad(beta, (0, pad_size)), functional.pad(g, (0, pad_size))
    total = length + pad_size
    query = query * (1 / (query.shape[-1] ** 0.5))

    v_beta = value * beta.unsqueeze(-1)
    k_beta = key * beta.unsqueeze(-1)
    query, key, value, k_beta, v_beta = [
        x.reshape(x.shape[0], x.shape[1], -1, chunk_size, x.shape[-1])
        for x in (query, key, value, k_beta, v_beta)
    ]
    g = g.reshape(g.shape[0], g.shape[1], -1, chunk_size)
    upper = torch.ones(chunk_size, chunk_size, dtype=torch.bool, device=query.device)
    mask = torch.triu(upper, diagonal=0)

    g = g.cumsum(dim=-1)
    decay_mask = ((g.unsqueeze(-1) - g.unsqueeze(-2)).tril().exp().float()).tril()
    attn = -((k_beta @ key.transpose(-1, -2)) * decay_mask).masked_fill(mask, 0)
    # The inverse of a triangular matrix, row after row.
    for i in range(1, chunk_size):
        row = attn[..., i, :i].clone()
        sub = attn[..., :i, :i].clone()
        attn[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-2)
    attn = attn + torch.eye(chunk_size, dtype=attn.dtype, device=attn.device)
    value = attn @ v_beta
    k_cumdecay = attn @ (k_beta * g.exp().unsqueeze(-1))
    state = torch.zeros(batch_size, num_heads, k_dim, v_dim).to(value)
    out = torch.zeros_like(value)
    mask = torch.triu(upper, diagonal=1)
    for i in range(total // chunk_size):
        q_i, k_i, v_i = query[:, :, i], key[:, :, i], value[:, :, i]
        attn = (q_i @ k_i.transpose(-1, -2) * decay_mask[:, :, i]).masked_fill_(mask, 0)
        v_prime = k_cumdecay[:, :, i] @ state
        v_new = v_i - v_prime
        attn_inter = (q_i * g[:, :, i, :, None].exp()) @ state
        out[:, :, i] = attn_inter + attn @ v_new
        state = (
            state * g[:, :, i, -1, None, None].exp()
            + (k_i * (g[:, :, i, -1, None] - g[:, :, i]).exp()[..., None]).transpose(-1, -2) @ v_new
        )
    out = out.reshape(out.shape[0], out.shape[1], -1, out.shape[-1])
    out = out[:, :, :length]
    return out.transpose(1, 2).contiguous().to(initial_dtype), state


class RMSNorm(nn.Module):
    """With a gate after the weight, where there is one."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor, gate: Tensor | None = None) -> Tensor:
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        hidden_states = self.weight * hidden_states.to(dtype)
        if gate is not None:
            hidden_states = hidden_states * functional.silu(gate.to(torch.float32))
        return hidden_states.to(dtype)


class GatedDeltaNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        conv_dim = 2 * KEYS + VALUES
        conv = nn.Conv1d(conv_dim, conv_dim, TAPS, padding=TAPS - 1, groups=conv_dim, bias=False)
        self.conv1d = conv
        self.in_proj_qkvz = nn.Linear(HIDDEN, 2 * KEYS + 2 * VALUES, bias=False)
        self.in_proj_ba = nn.Linear(HIDDEN, 2 * VALUE_HEADS, bias=False)
        dt = torch.exp(torch.empty(VALUE_HEADS).uniform_(math.log(0.001), math.log(0.1)))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))
        self.A_log = nn.Parameter(torch.log(torch.empty(VALUE_HEADS).uniform_(0.5, 16)))
        self.norm = RMSNorm(VALUE_DIM)
        self.out_proj = nn.Linear(VALUES, HIDDEN, bias=False)
        self.in_proj_qkvz.weight.data.mul_(2)
        self.conv1d.weight.data.mul_(2)

    def fix_query_key_value_ordering(self, qkvz: Tensor, ba: Tensor) -> tuple[Tensor, ...]:
        """Heads of keys come with their share of the heads of values."""
        share = VALUE_HEADS // KEY_HEADS
        qkvz = qkvz.view((*qkvz.size()[:-1], KEY_HEADS, 2 * KEY_DIM + 2 * share * VALUE_DIM))
        ba = ba.view((*ba.size()[:-1], KEY_HEADS, 2 * share))
        sizes = [KEY_DIM, KEY_DIM, share * VALUE_DIM, share * VALUE_DIM]
        query, key, value, z = torch.split(qkvz, sizes, dim=3)
        b, a = torch.split(ba, [share, share], dim=3)
        value = value.reshape(value.size(0), value.size(1), -1, VALUE_DIM)
        z = z.reshape(z.size(0), z.size(1), -1, VALUE_DIM)
        b = b.reshape(b.size(0), b.size(1), VALUE_HEADS)
        a = a.reshape(a.size(0), a.size(1), VALUE_HEADS)
        return query, key, value, z, b, a

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        batch_size, seq_len, _ = hidden_states.shape
        query, key, value, z, b, a = self.fix_query_key_value_ordering(
            self.in_proj_qkvz(hidden_states), self.in_proj_ba(hidden_states)
        )
        query, key, value = (x.reshape(x.shape[0], x.shape[1], -1) for x in (query, key, value))
        mixed_qkv = torch.cat((query, key, value), dim=-1).transpose(1, 2)
        mixed_qkv = functional.silu(self.conv1d(mixed_qkv)[:, :, :seq_len]).transpose(1, 2)
        query, key, value = torch.split(mixed_qkv, [KEYS, KEYS, VALUES], dim=-1)
        query = query.reshape(query.shape[0], query.shape[1], -1, KEY_DIM)
        key = key.reshape(key.shape[0], key.shape[1], -1, KEY_DIM)
        value = value.reshape(value.shape[0], value.shape[1], -1, VALUE_DIM)

        beta = b.sigmoid()
        g = -self.A_log.float().exp() * functional.softplus(a.float() + self.dt_bias)
        query = query.repeat_interleave(VALUE_HEADS // KEY_HEADS, dim=2)
        key = key.repeat_interleave(VALUE_HEADS // KEY_HEADS, dim=2)
        out, state = chunk_gated_delta_rule(query, key, value, g=g, beta=beta)
        z_shape = z.shape
        out = self.norm(out.reshape(-1, out.shape[-1]), z.reshape(-1, z.shape[-1]))
        out = out.reshape(z_shape).reshape(batch_size, seq_len, -1)
        return self.out_proj(out), state


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(HIDDEN), RMSNorm(HIDDEN)
        self.linear_attn = GatedDeltaNet()
        self.gate_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.up_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.down_proj = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mixed, state = self.linear_attn(self.input_layernorm(x))
        x = x + mixed
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(functional.silu(self.gate_proj(h)) * self.up_proj(h)), state


class DeltaModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([DecoderLayer() for _ in range(LAYERS)])
        self.norm = RMSNorm(HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        hidden_states = self.embed_tokens(input_ids)
        states = []
        for layer in self.layers:
            hidden_states, state = layer(hidden_states)
            states.append(state)
        return self.lm_head(self.norm(hidden_states)), torch.stack(states)


def build() -> nn.Module:
    """int64[batch, 80] to float32[batch, 80, 1024] and states [2, batch, 4, 32, 64]"""
    torch.manual_seed(0)
    return DeltaModel().eval()
