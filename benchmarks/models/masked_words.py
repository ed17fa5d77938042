"""Hidden words, as ModernBERT: a window in most layers, the whole text in every third."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 1024
HIDDEN = 256
HEADS = 4
HEAD_DIM = HIDDEN // HEADS
INTERMEDIATE = 384
LAYERS = 5
GLOBAL_EVERY = 3
WINDOW = 32
POSITIONS = 256


def inverted_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """[batch, keys] of ones and zeros to what is added to [batch, 1, queries, keys]."""
    bsz, src_len = mask.size()
    expanded_mask = mask[:, None, None, :].expand(bsz, 1, src_len, src_len).to(dtype)
    inverted = 1.0 - expanded_mask
    return inverted.masked_fill(inverted.to(torch.bool), torch.finfo(dtype).min)


class CachedRotary(nn.Module):
    cos_cached: Tensor
    sin_cached: Tensor

    def __init__(self, dim: int, base: float) -> None:
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        freqs = torch.outer(torch.arange(POSITIONS, dtype=torch.float32), inv_freq)
        self.register_buffer("cos_cached", torch.cos(freqs), persistent=False)
        self.register_buffer("sin_cached", torch.sin(freqs), persistent=False)

    def forward(self, qkv: Tensor, position_ids: Tensor) -> Tensor:
        # qkv: [batch, seq, 3, heads, dim]; the caches have half of dim.
        cos = self.cos_cached[position_ids][:, :, None, None, :]
        sin = self.sin_cached[position_ids][:, :, None, None, :]
        qk = qkv[:, :, :2]
        x1, x2 = qk.chunk(2, dim=-1)
        qk = torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1)
        return torch.cat([qk, qkv[:, :, 2:]], dim=2)


class ModernBertMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.Wi = nn.Linear(HIDDEN, INTERMEDIATE * 2, bias=False)
        self.act = nn.GELU()
        self.drop = nn.Dropout(0.0)
        self.Wo = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        input, gate = self.Wi(hidden_states).chunk(2, dim=-1)
        out: Tensor = self.Wo(self.drop(self.act(input) * gate))
        return out


class ModernBertAttention(nn.Module):
    def __init__(self, layer_id: int) -> None:
        super().__init__()
        self.Wqkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.Wo = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.out_drop = nn.Identity()
        self.local = layer_id % GLOBAL_EVERY != 0
        self.rotary_emb = CachedRotary(HEAD_DIM, 10000.0 if self.local else 160000.0)

    def forward(
        self, hidden_states: Tensor, mask: Tensor, sliding_window_mask: Tensor, ids: Tensor
    ) -> Tensor:
        bs, _seq, _ = hidden_states.shape
        qkv = self.Wqkv(hidden_states).view(bs, -1, 3, HEADS, HEAD_DIM)
        qkv = self.rotary_emb(qkv, position_ids=ids)
        query, key, value = qkv.transpose(3, 1).unbind(dim=2)
        if self.local:
            mask = sliding_window_mask
        attn_output = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attn_output = attn_output.transpose(1, 2).contiguous().view(bs, -1, HIDDEN)
        out: Tensor = self.out_drop(self.Wo(attn_output))
        return out


class ModernBertLayer(nn.Module):
    def __init__(self, layer_id: int) -> None:
        super().__init__()
        self.attn_norm = nn.Identity() if layer_id == 0 else nn.LayerNorm(HIDDEN, bias=False)
        self.attn = ModernBertAttention(layer_id)
        self.mlp_norm = nn.LayerNorm(HIDDEN, bias=False)
        self.mlp = ModernBertMLP()

    def forward(self, x: Tensor, mask: Tensor, sliding: Tensor, ids: Tensor) -> Tensor:
        x = x + self.attn(self.attn_norm(x), mask, sliding, ids)
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class ModernBert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=0)
        self.emb_norm = nn.LayerNorm(HIDDEN, bias=False)
        self.layers = nn.ModuleList([ModernBertLayer(i) for i in range(LAYERS)])
        self.final_norm = nn.LayerNorm(HIDDEN, bias=False)
        self.head_dense = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.head_norm = nn.LayerNorm(HIDDEN, bias=False)
        self.decoder = nn.Linear(HIDDEN, VOCABULARY, bias=True)
        nn.init.trunc_normal_(self.tok_embeddings.weight, std=0.05, a=-0.15, b=0.15)
        self.decoder.weight = self.tok_embeddings.weight

    def _update_attention_mask(self, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        global_attention_mask = inverted_mask(attention_mask, torch.float32)
        rows = torch.arange(global_attention_mask.shape[2]).unsqueeze(0)
        distance = torch.abs(rows - rows.T)
        window_mask = (distance <= WINDOW // 2).unsqueeze(0).unsqueeze(0)
        sliding_window_mask = global_attention_mask.masked_fill(
            window_mask.logical_not(), torch.finfo(torch.float32).min
        )
        return global_attention_mask, sliding_window_mask

    def forward(self, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        mask, sliding_window_mask = self._update_attention_mask(attention_mask)
        hidden_states = self.emb_norm(self.tok_embeddings(input_ids))
        for layer in self.layers:
            hidden_states = layer(hidden_states, mask, sliding_window_mask, position_ids)
        hidden_states = functional.gelu(self.head_dense(self.final_norm(hidden_states)))
        logits: Tensor = self.decoder(self.head_norm(hidden_states))
        return logits


def build() -> nn.Module:
    """int64[batch, 96], twice, to float32[batch, 96, 1024]"""
    torch.manual_seed(0)
    return ModernBert().eval()
