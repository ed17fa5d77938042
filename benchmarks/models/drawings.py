"""Drawings: Stable Diffusion's U-Net, which takes noise out of latents as a text says."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

LATENT = 4
CHANNELS = 64
CONTEXT = 96
HEAD = 32
EMBED = CHANNELS * 4


def timestep_embedding(timesteps: Tensor, dim: int, max_period: int = 10000) -> Tensor:
    half = dim // 2
    freqs = torch.exp(
        -math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half
    ).to(device=timesteps.device)
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class GroupNorm32(nn.GroupNorm):
    """A group norm that computes in float32 whatever it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).type(x.dtype)


class ResBlock(nn.Module):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.in_layers = nn.Sequential(
            GroupNorm32(32, channels), nn.SiLU(), nn.Conv2d(channels, out, 3, padding=1)
        )
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(EMBED, out))
        self.out_layers = nn.Sequential(
            GroupNorm32(32, out), nn.SiLU(), nn.Dropout(p=0.0), nn.Conv2d(out, out, 3, padding=1)
        )
        self.skip = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        h = self.in_layers(x)
        emb_out = self.emb_layers(emb).type(h.dtype)
        while len(emb_out.shape) < len(h.shape):
            emb_out = emb_out[..., None]
        h = h + emb_out
        result: Tensor = self.skip(x) + self.out_layers(h)
        return result


class GEGLU(nn.Module):
    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.proj = nn.Linear(dim_in, dim_out * 2)

    def forward(self, x: Tensor) -> Tensor:
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * functional.gelu(gate)


class CrossAttention(nn.Module):
    """Attention to the context, or to x itself where there is none; heads lie in the batch."""

    def __init__(self, dim: int, context_dim: int | None = None) -> None:
        super().__init__()
        self.heads, self.scale = dim // HEAD, HEAD**-0.5
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(context_dim or dim, dim, bias=False)
        self.to_v = nn.Linear(context_dim or dim, dim, bias=False)
        self.to_out = nn.Sequential(nn.Linear(dim, dim), nn.Dropout(0.0))

    def split(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        t = t.reshape(b, n, self.heads, HEAD).permute(0, 2, 1, 3)
        return t.reshape(b * self.heads, n, HEAD)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        context = x if context is None else context
        q, k, v = map(self.split, (self.to_q(x), self.to_k(context), self.to_v(context)))
        sim = torch.einsum("bid,bjd->bij", q, k) * self.scale
        out = torch.einsum("bij,bjd->bid", sim.softmax(dim=-1), v)
        b, n, c = x.shape
        out = out.reshape(b, self.heads, n, HEAD).permute(0, 2, 1, 3).reshape(b, n, c)
        result: Tensor = self.to_out(out)
        return result


class SpatialTransformer(nn.Module):
    """A transformer's block over the pixels, between two convolutions of 1 * 1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, channels, eps=1e-6)
        self.proj_in, self.proj_out = (nn.Conv2d(channels, channels, 1) for _ in range(2))
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(channels) for _ in range(3))
        self.attn1, self.attn2 = CrossAttention(channels), CrossAttention(channels, CONTEXT)
        self.ff = nn.Sequential(
            GEGLU(channels, channels * 4), nn.Dropout(0.0), nn.Linear(channels * 4, channels)
        )

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        b, c, h, w = x.shape
        x_in = x
        x = self.proj_in(self.norm(x)).permute(0, 2, 3, 1).reshape(b, h * w, c)
        x = self.attn1(self.norm1(x)) + x
        x = self.attn2(self.norm2(x), context) + x
        x = self.ff(self.norm3(x)) + x
        x = x.reshape(b, h, w, c).permute(0, 3, 1, 2)
        result: Tensor = self.proj_out(x) + x_in
        return result


class Steps(nn.Sequential):
    """Passes each of its layers what that layer takes besides the picture."""

    def forward(  # type: ignore[override]
        self, x: Tensor, emb: Tensor, context: Tensor
    ) -> Tensor:
        for layer in self:
            if isinstance(layer, ResBlock):
                x = layer(x, emb)
            elif isinstance(layer, SpatialTransformer):
                x = layer(x, context)
            else:
                x = layer(x)
        return x


class UNetModel(nn.Module):
    """Latents, their times and a text's states to the noise in the latents."""

    def __init__(self) -> None:
        super().__init__()
        c, d = CHANNELS, CHANNELS * 2
        self.time_embed = nn.Sequential(nn.Linear(c, EMBED), nn.SiLU(), nn.Linear(EMBED, EMBED))
        self.input_blocks = nn.ModuleList([Steps(nn.Conv2d(LATENT, c, 3, padding=1))])
        self.input_blocks.append(Steps(ResBlock(c, c), SpatialTransformer(c)))
        self.input_blocks.append(Steps(nn.Conv2d(c, c, 3, stride=2, padding=1)))
        self.input_blocks.append(Steps(ResBlock(c, d), SpatialTransformer(d)))
        self.middle_block = Steps(ResBlock(d, d), SpatialTransformer(d), ResBlock(d, d))
        self.output_blocks = nn.ModuleList()
        for i, o, up in ((d + d, d, False), (d + c, d, True), (d + c, c, False), (c + c, c, False)):
            layers: list[nn.Module] = [ResBlock(i, o), SpatialTransformer(o)]
            if up:
                layers += [nn.Upsample(scale_factor=2), nn.Conv2d(d, d, 3, padding=1)]
            self.output_blocks.append(Steps(*layers))
        self.out = nn.Sequential(GroupNorm32(32, c), nn.SiLU(), nn.Conv2d(c, LATENT, 3, padding=1))

    def forward(self, x: Tensor, timesteps: Tensor, context: Tensor) -> Tensor:
        emb = self.time_embed(timestep_embedding(timesteps, CHANNELS))
        h, hs = x, []
        for module in self.input_blocks:
            h = module(h, emb, context)
            hs.append(h)
        h = self.middle_block(h, emb, context)
        for module in self.output_blocks:
            h = module(torch.cat([h, hs.pop()], dim=1), emb, context)
        result: Tensor = self.out(h)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    model = UNetModel()
    for m in model.modules():
        if isinstance(m, CrossAttention):
            m.to_q.weight.data *= 4
    return model.eval()
