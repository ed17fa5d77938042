"""Flamingo: latents resample images, text looks at the last image by gated cross attention."""

from __future__ import annotations

import torch
from torch import Tensor, einsum, nn
from torch.nn import functional

VISION = 96
MEDIA = 2
SIZE = 48
PATCH = 8
WIDTH = 128
HEADS = 4
HEAD_WIDTH = 32
INNER = HEADS * HEAD_WIDTH
LATENTS = 16
VOCABULARY = 28
MEDIA_TOKEN = 3
LENGTH = 24


def feed_forward(dim: int, mult: int = 4) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, dim * mult, bias=False),
        nn.GELU(),
        nn.Linear(dim * mult, dim, bias=False),
    )


def split_heads(x: Tensor) -> Tensor:
    return torch.unflatten(x, -1, (HEADS, HEAD_WIDTH)).movedim(-2, 1)


class PerceiverAttention(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm_media, self.norm_latents = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, INNER, bias=False)
        self.to_kv = nn.Linear(dim, INNER * 2, bias=False)
        self.to_out = nn.Linear(INNER, dim, bias=False)

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        x, latents = self.norm_media(x), self.norm_latents(latents)
        q = self.to_q(latents)
        k, v = self.to_kv(torch.cat((x, latents), dim=-2)).chunk(2, dim=-1)
        b, m = q.shape[:2]
        q, k, v = (t.reshape(b, m, -1, HEADS, HEAD_WIDTH).permute(0, 3, 1, 2, 4) for t in (q, k, v))
        q = q * HEAD_WIDTH**-0.5
        sim = einsum("... i d, ... j d -> ... i j", q, k)
        sim = sim - sim.amax(dim=-1, keepdim=True).detach()
        out = einsum("... i j, ... j d -> ... i d", sim.softmax(dim=-1), v)
        result: Tensor = self.to_out(out.permute(0, 2, 3, 1, 4).reshape(b, m, -1, INNER))
        return result


class PerceiverResampler(nn.Module):
    def __init__(self, dim: int, depth: int) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(LATENTS, dim))
        self.media_time_embs = nn.Parameter(torch.randn(MEDIA, 1, dim))
        self.attentions = nn.ModuleList(PerceiverAttention(dim) for _ in range(depth))
        self.feed_forwards = nn.ModuleList(feed_forward(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        b, m = x.shape[:2]
        x = x + self.media_time_embs[:m]
        latents = self.latents[None, None].expand(b, m, -1, -1)
        for attn, ff in zip(self.attentions, self.feed_forwards):
            latents = attn(x, latents) + latents
            latents = ff(latents) + latents
        out: Tensor = self.norm(latents)
        return out


class MaskedCrossAttention(nn.Module):
    def __init__(self, dim: int, dim_visual: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, INNER, bias=False)
        self.to_kv = nn.Linear(dim_visual, INNER * 2, bias=False)
        self.to_out = nn.Linear(INNER, dim, bias=False)

    def forward(self, x: Tensor, media: Tensor, media_locations: Tensor) -> Tensor:
        m, n = media.shape[1:3]
        q = split_heads(self.to_q(self.norm(x))) * HEAD_WIDTH**-0.5
        k, v = (split_heads(t) for t in self.to_kv(media.flatten(1, 2)).chunk(2, dim=-1))
        sim = einsum("b h i d, b h j d -> b h i j", q, k)

        # Each word sees the image that came last before it, and no other.
        text_time = media_locations.cumsum(dim=-1)
        media_time = torch.arange(m, device=x.device) + 1
        same = text_time[:, None, :, None] == media_time.repeat_interleave(n)[None, None, None, :]
        sim = sim.masked_fill(~same, -torch.finfo(sim.dtype).max)
        sim = sim - sim.amax(dim=-1, keepdim=True).detach()
        attn = sim.softmax(dim=-1)
        without_media = (text_time == 0)[:, None, :, None]
        attn = attn.masked_fill(without_media, 0.0)
        out = einsum("b h i j, b h j d -> b h i d", attn, v)
        result: Tensor = self.to_out(out.transpose(1, 2).flatten(2))
        return result


class GatedBlock(nn.Module):
    """Gated cross attention, then a language model's own layer."""

    def __init__(self, dim: int, dim_visual: int) -> None:
        super().__init__()
        self.attn = MaskedCrossAttention(dim, dim_visual)
        self.attn_gate = nn.Parameter(torch.tensor([0.7]))
        self.ff = feed_forward(dim)
        self.ff_gate = nn.Parameter(torch.tensor([-0.4]))
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.c_proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU("tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor, media: Tensor, media_locations: Tensor) -> Tensor:
        x = self.attn(x, media, media_locations) * self.attn_gate.tanh() + x
        x = self.ff(x) * self.ff_gate.tanh() + x
        q, k, v = map(split_heads, self.c_attn(self.ln_1(x)).split(WIDTH, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(x.size()))
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Flamingo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        patches = (SIZE // PATCH) ** 2
        self.patch_embed = nn.Conv2d(3, VISION, PATCH, PATCH, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(VISION) * VISION**-0.5)
        self.positional_embedding = nn.Parameter(torch.randn(patches + 1, VISION) * 0.2)
        self.ln_vision = nn.LayerNorm(VISION)
        self.resampler = PerceiverResampler(VISION, depth=2)
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(GatedBlock(WIDTH, VISION) for _ in range(2))
        self.ln_f = nn.LayerNorm(WIDTH)

    def see(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images.flatten(0, 1)).flatten(2).transpose(1, 2)
        token = self.class_embedding + torch.zeros(x.shape[0], 1, x.shape[-1], device=x.device)
        x = torch.cat([token, x], dim=1) + self.positional_embedding
        return self.ln_vision(x).unflatten(0, (-1, MEDIA))  # type: ignore[no-any-return]

    def forward(self, images: Tensor, tokens: Tensor) -> Tensor:
        media = self.resampler(self.see(images))
        x = self.wte(tokens) + self.wpe.weight[: tokens.size(1)]
        for block in self.blocks:
            x = block(x, media, tokens == MEDIA_TOKEN)
        logits = functional.linear(self.ln_f(x), self.wte.weight)
        return logits.mul_(WIDTH**-0.5)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Flamingo().eval()
