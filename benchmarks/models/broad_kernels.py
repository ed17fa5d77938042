"""VAN: attention as a product with a depthwise convolution, a dilated one and a pointwise one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models import norms

DIMS = (32, 64, 160, 256)
MLP_RATIOS = (8, 8, 4, 4)
DEPTHS = (1, 2, 2, 1)
CLASSES = 100


class DWConv(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 3, 1, 1, bias=True, groups=dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dwconv(x)
        return x


class Mlp(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(dim, hidden, 1)
        self.dwconv = DWConv(hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Conv2d(hidden, dim, 1)
        self.drop = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        x = self.dwconv(x)
        x = self.act(x)
        x = self.drop(x)
        x = self.fc2(x)
        x = self.drop(x)
        return x


class LKA(nn.Module):
    """A kernel of 21x21, taken apart; in the last stages its padding is wider than the picture."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(dim, dim, 5, padding=2, groups=dim)
        self.conv_spatial = nn.Conv2d(dim, dim, 7, 1, padding=9, groups=dim, dilation=3)
        self.conv1 = nn.Conv2d(dim, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        u = x.clone()
        attn: Tensor = self.conv0(x)
        attn = self.conv_spatial(attn)
        attn = self.conv1(attn)
        return u * attn


class Attention(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj_1 = nn.Conv2d(dim, dim, 1)
        self.activation = nn.GELU()
        self.spatial_gating_unit = LKA(dim)
        self.proj_2 = nn.Conv2d(dim, dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x.clone()
        x = self.proj_1(x)
        x = self.activation(x)
        x = self.spatial_gating_unit(x)
        x = self.proj_2(x)
        x = x + shortcut
        return x


class Block(nn.Module):
    def __init__(self, dim: int, mlp_ratio: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(dim)
        self.attn = Attention(dim)
        self.norm2 = nn.BatchNorm2d(dim)
        self.mlp = Mlp(dim, dim * mlp_ratio)
        self.layer_scale_1 = nn.Parameter(torch.rand(dim) * 0.5 + 0.25)
        self.layer_scale_2 = nn.Parameter(torch.rand(dim) * 0.5 + 0.25)

    def forward(self, x: Tensor) -> Tensor:
        scale_1 = self.layer_scale_1.unsqueeze(-1).unsqueeze(-1)
        scale_2 = self.layer_scale_2.unsqueeze(-1).unsqueeze(-1)
        x = x + scale_1 * self.attn(self.norm1(x))
        x = x + scale_2 * self.mlp(self.norm2(x))
        return x


class OverlapPatchEmbed(nn.Module):
    def __init__(self, patch_size: int, stride: int, inputs: int, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(inputs, dim, patch_size, stride, patch_size // 2)
        self.norm = nn.BatchNorm2d(dim)

    def forward(self, x: Tensor) -> tuple[Tensor, int, int]:
        x = self.proj(x)
        _, _, h, w = x.shape
        x = self.norm(x)
        return x, h, w


class VAN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for i, (dim, depth, ratio) in enumerate(zip(DIMS, DEPTHS, MLP_RATIOS)):
            patch = OverlapPatchEmbed(7 if i == 0 else 3, 4 if i == 0 else 2, (3, *DIMS)[i], dim)
            setattr(self, f"patch_embed{i + 1}", patch)
            setattr(self, f"block{i + 1}", nn.ModuleList(Block(dim, ratio) for _ in range(depth)))
            setattr(self, f"norm{i + 1}", nn.LayerNorm(dim, eps=1e-6))
        self.head = nn.Linear(DIMS[-1], CLASSES)

    def forward_features(self, x: Tensor) -> Tensor:
        b = x.shape[0]
        for i in range(len(DIMS)):
            x, h, w = getattr(self, f"patch_embed{i + 1}")(x)
            for block in getattr(self, f"block{i + 1}"):
                x = block(x)
            x = x.flatten(2).transpose(1, 2)
            x = getattr(self, f"norm{i + 1}")(x)
            if i != len(DIMS) - 1:
                x = x.reshape(b, h, w, -1).permute(0, 3, 1, 2).contiguous()
        return x.mean(dim=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.forward_features(x)
        x = self.head(x)
        return x


def build() -> nn.Module:
    torch.manual_seed(0)
    net = VAN()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
        elif isinstance(module, nn.BatchNorm2d):
            norms.vary(module)
    return net.eval()
