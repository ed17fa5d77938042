"""Audio Spectrogram Transformer: a distilled ViT over overlapping patches of a spectrogram."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

DIM = 192
HEADS = 3
DEPTH = 3
FREQUENCIES = 128
FRAMES = 256
PATCH = 16
STRIDE = 10
PRETRAINED_SIDE = 24
CLASSES = 527


class Mlp(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.act(self.fc1(x)))
        x = self.drop(self.fc2(x))
        return x


class Attention(nn.Module):
    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=True)
        self.attn_drop = nn.Dropout(0.0)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.num_heads, c // self.num_heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        x = (attn @ v).transpose(1, 2).reshape(b, n, c)
        x = self.proj_drop(self.proj(x))
        return x


class Block(nn.Module):
    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, num_heads)
        self.drop_path = nn.Identity()
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, dim * 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        x = x + self.drop_path(self.mlp(self.norm2(x)))
        return x


class PatchEmbed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(1, DIM, kernel_size=(PATCH, PATCH), stride=(STRIDE, STRIDE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.proj(x).flatten(2).transpose(1, 2)
        return x


class ASTModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed()
        self.cls_token = nn.Parameter(torch.randn(1, 1, DIM) * 0.2)
        self.dist_token = nn.Parameter(torch.randn(1, 1, DIM) * 0.2)
        f_dim = (FREQUENCIES - PATCH) // STRIDE + 1
        t_dim = (FRAMES - PATCH) // STRIDE + 1
        pretrained = torch.randn(1, PRETRAINED_SIDE * PRETRAINED_SIDE + 2, DIM) * 0.2
        grid = pretrained[:, 2:, :].transpose(1, 2)
        grid = grid.reshape(1, DIM, PRETRAINED_SIDE, PRETRAINED_SIDE)
        middle = PRETRAINED_SIDE // 2 - f_dim // 2
        grid = grid[:, :, middle : middle + f_dim, :]
        grid = functional.interpolate(grid, size=(f_dim, t_dim), mode="bilinear")
        grid = grid.reshape(1, DIM, f_dim * t_dim).transpose(1, 2)
        self.pos_embed = nn.Parameter(torch.cat([pretrained[:, :2, :], grid], dim=1))
        self.pos_drop = nn.Dropout(0.0)
        self.blocks = nn.ModuleList([Block(DIM, HEADS) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(DIM, eps=1e-6)
        self.mlp_head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES))

    def forward(self, fbank: torch.Tensor) -> torch.Tensor:
        x = fbank.unsqueeze(1)
        x = x.transpose(2, 3)
        batch = x.shape[0]
        x = self.patch_embed(x)
        cls_tokens = self.cls_token.expand(batch, -1, -1)
        dist_token = self.dist_token.expand(batch, -1, -1)
        x = torch.cat((cls_tokens, dist_token, x), dim=1)
        x = x + self.pos_embed
        x = self.pos_drop(x)
        for blk in self.blocks:
            x = blk(x)
        x = self.norm(x)
        x = (x[:, 0] + x[:, 1]) / 2
        y: torch.Tensor = self.mlp_head(x)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    module = ASTModel()
    with torch.no_grad():
        for block in module.blocks:
            assert isinstance(block, Block)
            # Attention that is far from uniform, as after training.
            block.attn.qkv.weight[: 2 * DIM].mul_(3.0)
    return module.eval()
