"""EdgeNeXt: depthwise convolutions, cascades of split channels, and attention of channels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

DIMS = (24, 48, 88, 168)
DEPTHS = (1, 2, 3, 2)
KERNELS = (3, 5, 7, 9)
SCALES = (2, 2, 3, 4)
HEADS = 4
EXPAND = 4
CLASSES = 100


class LayerNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6, channels_first: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps, self.channels_first, self.shape = eps, channels_first, (dim,)

    def forward(self, x: Tensor) -> Tensor:
        if not self.channels_first:
            return functional.layer_norm(x, self.shape, self.weight, self.bias, self.eps)
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class PositionalEncodingFourier(nn.Module):
    def __init__(self, dim: int, hidden: int = 32, temperature: float = 10000) -> None:
        super().__init__()
        self.token_projection = nn.Conv2d(hidden * 2, dim, kernel_size=1)
        self.scale, self.temperature, self.hidden = 2 * math.pi, temperature, hidden

    def forward(self, b: int, h: int, w: int) -> Tensor:
        device = self.token_projection.weight.device
        mask = torch.zeros(b, h, w).bool().to(device)
        not_mask = ~mask
        y_embed = not_mask.cumsum(1, dtype=torch.float32)
        x_embed = not_mask.cumsum(2, dtype=torch.float32)
        y_embed = y_embed / (y_embed[:, -1:, :] + 1e-6) * self.scale
        x_embed = x_embed / (x_embed[:, :, -1:] + 1e-6) * self.scale
        dim_t = torch.arange(self.hidden, dtype=torch.float32, device=device)
        dim_t = self.temperature ** (2 * (dim_t // 2) / self.hidden)
        x, y = x_embed[:, :, :, None] / dim_t, y_embed[:, :, :, None] / dim_t
        x = torch.stack((x[..., 0::2].sin(), x[..., 1::2].cos()), dim=4).flatten(3)
        y = torch.stack((y[..., 0::2].sin(), y[..., 1::2].cos()), dim=4).flatten(3)
        pos: Tensor = self.token_projection(torch.cat((y, x), dim=3).permute(0, 3, 1, 2))
        return pos


class XCA(nn.Module):
    """Attention between channels: a matrix of C/heads by C/heads, whatever the picture's size."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.temperature = nn.Parameter(torch.rand(heads, 1, 1) * 4 + 1)
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = (t.transpose(-2, -1) for t in qkv.unbind(0))
        q = functional.normalize(q, dim=-1)
        k = functional.normalize(k, dim=-1)
        attn = (q @ k.transpose(-2, -1)) * self.temperature
        attn = attn.softmax(dim=-1)
        y: Tensor = self.proj((attn @ v).permute(0, 3, 1, 2).reshape(b, n, c))
        return y


class ConvEncoder(nn.Module):
    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.norm = LayerNorm(dim)
        self.pwconv1, self.pwconv2 = nn.Linear(dim, EXPAND * dim), nn.Linear(EXPAND * dim, dim)
        self.act = nn.GELU()
        self.gamma = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, input: Tensor) -> Tensor:
        x: Tensor = self.dwconv(input).permute(0, 2, 3, 1)
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        x = self.gamma * x
        return input + x.permute(0, 3, 1, 2)


class SDTAEncoder(nn.Module):
    def __init__(self, dim: int, scales: int, use_pos_emb: bool) -> None:
        super().__init__()
        self.width = max(math.ceil(dim / scales), dim // scales)
        self.nums = 1 if scales == 1 else scales - 1
        self.convs = nn.ModuleList(
            nn.Conv2d(self.width, self.width, 3, padding=1, groups=self.width)
            for _ in range(self.nums)
        )
        self.pos_embd = PositionalEncodingFourier(dim) if use_pos_emb else None
        self.norm_xca, self.xca = LayerNorm(dim), XCA(dim, HEADS)
        self.gamma_xca = nn.Parameter(torch.rand(dim) + 0.5)
        self.norm = LayerNorm(dim)
        self.pwconv1, self.pwconv2 = nn.Linear(dim, EXPAND * dim), nn.Linear(EXPAND * dim, dim)
        self.act = nn.GELU()
        self.gamma = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        input = x
        spx = torch.split(x, self.width, 1)
        sp = out = self.convs[0](spx[0])
        for i in range(1, self.nums):
            sp = self.convs[i](sp + spx[i])
            out = torch.cat((out, sp), 1)
        x = torch.cat((out, spx[self.nums]), 1)
        b, c, h, w = x.shape
        x = x.reshape(b, c, h * w).permute(0, 2, 1)
        if self.pos_embd is not None:
            x = x + self.pos_embd(b, h, w).reshape(b, -1, x.shape[1]).permute(0, 2, 1)
        x = x + self.gamma_xca * self.xca(self.norm_xca(x))
        x = x.reshape(b, h, w, c)
        x = self.gamma * self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        return input + x.permute(0, 3, 1, 2)


class EdgeNeXt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = nn.Sequential(nn.Conv2d(3, DIMS[0], 4, 4), LayerNorm(DIMS[0], channels_first=True))
        self.downsample_layers = nn.ModuleList([stem])
        self.stages = nn.ModuleList()
        for i, (dim, depth) in enumerate(zip(DIMS, DEPTHS)):
            if i:
                norm = LayerNorm(DIMS[i - 1], channels_first=True)
                conv = nn.Conv2d(DIMS[i - 1], dim, kernel_size=2, stride=2)
                self.downsample_layers.append(nn.Sequential(norm, conv))
            blocks: list[nn.Module] = [ConvEncoder(dim, KERNELS[i]) for _ in range(depth)]
            if i:
                blocks[-1] = SDTAEncoder(dim, SCALES[i], use_pos_emb=i == 1)
            self.stages.append(nn.Sequential(*blocks))
        self.norm = nn.LayerNorm(DIMS[-1], eps=1e-6)
        self.head = nn.Linear(DIMS[-1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        for downsample, stage in zip(self.downsample_layers, self.stages):
            x = stage(downsample(x))
        y: Tensor = self.head(self.norm(x.mean([-2, -1])))
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    net = EdgeNeXt()
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_normal_(module.weight)
    return net.eval()
