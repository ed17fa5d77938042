"""FocalNet: queries times contexts of several reaches, each under a gate, in place of attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

DIMS = (48, 96, 192)
DEPTHS = (2, 2, 2)
FOCAL_LEVELS = 3
FOCAL_WINDOW = 3
CLASSES = 100


class Mlp(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc2(self.act(self.fc1(x)))
        return y


class FocalModulation(nn.Module):
    def __init__(
        self, dim: int, focal_factor: int = 2, postln: bool = False, normalize: bool = False
    ) -> None:
        super().__init__()
        self.focal_level = FOCAL_LEVELS
        self.use_postln, self.normalize_modulator = postln, normalize
        self.f = nn.Linear(dim, 2 * dim + (self.focal_level + 1))
        self.h = nn.Conv2d(dim, dim, kernel_size=1)
        self.act = nn.GELU()
        self.proj = nn.Linear(dim, dim)
        self.focal_layers = nn.ModuleList()
        for k in range(self.focal_level):
            size = focal_factor * k + FOCAL_WINDOW
            conv = nn.Conv2d(dim, dim, size, 1, size // 2, groups=dim, bias=False)
            self.focal_layers.append(nn.Sequential(conv, nn.GELU()))
        if self.use_postln:
            self.ln = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        c = x.shape[-1]
        x = self.f(x).permute(0, 3, 1, 2).contiguous()
        q, ctx, gates = torch.split(x, [c, c, self.focal_level + 1], 1)
        ctx_all: Tensor | float = 0
        for level in range(self.focal_level):
            ctx = self.focal_layers[level](ctx)
            ctx_all = ctx_all + ctx * gates[:, level : level + 1]
        ctx_global = self.act(ctx.mean(2, keepdim=True).mean(3, keepdim=True))
        ctx_all = ctx_all + ctx_global * gates[:, self.focal_level :]
        if self.normalize_modulator:
            ctx_all = ctx_all / (self.focal_level + 1)
        x_out = q * self.h(ctx_all)
        x_out = x_out.permute(0, 2, 3, 1).contiguous()
        if self.use_postln:
            x_out = self.ln(x_out)
        y: Tensor = self.proj(x_out)
        return y


class FocalNetBlock(nn.Module):
    H: int
    W: int

    def __init__(self, dim: int, postln: bool) -> None:
        super().__init__()
        self.use_postln = postln
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.modulation = FocalModulation(dim, postln=postln, normalize=not postln)
        self.mlp = Mlp(dim, 4 * dim)
        self.gamma_1 = nn.Parameter(torch.rand(dim) + 0.5)
        self.gamma_2 = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        b, _, c = x.shape
        shortcut = x
        x = x if self.use_postln else self.norm1(x)
        x = x.view(b, self.H, self.W, c)
        x = self.modulation(x).view(b, self.H * self.W, c)
        x = x if not self.use_postln else self.norm1(x)
        x = shortcut + self.gamma_1 * x
        y: Tensor = self.norm2(self.mlp(x)) if self.use_postln else self.mlp(self.norm2(x))
        return x + self.gamma_2 * y


class PatchEmbed(nn.Module):
    def __init__(self, inputs: int, dim: int, is_stem: bool) -> None:
        super().__init__()
        kernel, padding, stride = (7, 2, 4) if is_stem else (3, 1, 2)
        self.proj = nn.Conv2d(inputs, dim, kernel, stride, padding)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> tuple[Tensor, int, int]:
        x = self.proj(x)
        h, w = x.shape[2:]
        x = x.flatten(2).transpose(1, 2)
        return self.norm(x), h, w


class BasicLayer(nn.Module):
    def __init__(self, dim: int, out_dim: int | None, depth: int, postln: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(FocalNetBlock(dim, postln) for _ in range(depth))
        self.downsample = None if out_dim is None else PatchEmbed(dim, out_dim, False)

    def forward(self, x: Tensor, h: int, w: int) -> tuple[Tensor, int, int]:
        for blk in self.blocks:
            assert isinstance(blk, FocalNetBlock)
            blk.H, blk.W = h, w
            x = blk(x)
        if self.downsample is None:
            return x, h, w
        x = x.transpose(1, 2).reshape(x.shape[0], -1, h, w)
        x, h, w = self.downsample(x)
        return x, h, w


class FocalNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(3, DIMS[0], True)
        self.layers = nn.ModuleList(
            BasicLayer(dim, out_dim, depth, postln)
            for dim, out_dim, depth, postln in zip(
                DIMS, (*DIMS[1:], None), DEPTHS, (False, True, False)
            )
        )
        self.norm = nn.LayerNorm(DIMS[-1])
        self.avgpool = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(DIMS[-1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x, h, w = self.patch_embed(x)
        for layer in self.layers:
            x, h, w = layer(x, h, w)
        x = self.norm(x)
        x = self.avgpool(x.transpose(1, 2))
        y: Tensor = self.head(torch.flatten(x, 1))
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    net = FocalNet()
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_normal_(module.weight, 1.4)
    return net.eval()
