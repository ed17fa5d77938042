"""Details: SwinIR, a picture enlarged by attention in windows that shift."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

DIM = 60
HEADS = 6
WINDOW = 8
UPSCALE = 2
MEAN = (0.4488, 0.4371, 0.4040)


def window_partition(x: Tensor, ws: int) -> Tensor:
    b, h, w, c = x.shape
    x = x.view(b, h // ws, ws, w // ws, ws, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws, ws, c)


def window_reverse(windows: Tensor, ws: int, h: int, w: int) -> Tensor:
    x = windows.view(-1, h // ws, w // ws, ws, ws, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, h, w, windows.shape[-1])


class Mlp(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(DIM, hidden), nn.GELU(), nn.Linear(hidden, DIM)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc2(self.act(self.fc1(x)))
        return y


class WindowAttention(nn.Module):
    """Attention within windows, with a bias for each pair of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = (DIM // HEADS) ** -0.5
        table = torch.zeros((2 * WINDOW - 1) * (2 * WINDOW - 1), HEADS)
        self.relative_position_bias_table = nn.Parameter(nn.init.trunc_normal_(table, std=0.5))
        side = torch.arange(WINDOW)
        coords = torch.flatten(torch.stack(torch.meshgrid([side, side], indexing="ij")), 1)
        relative = coords[:, :, None] - coords[:, None, :]
        relative = relative.permute(1, 2, 0).contiguous()
        relative[:, :, 0] += WINDOW - 1
        relative[:, :, 1] += WINDOW - 1
        relative[:, :, 0] *= 2 * WINDOW - 1
        self.relative_position_index = nn.Buffer(relative.sum(-1))
        self.qkv, self.proj = nn.Linear(DIM, DIM * 3), nn.Linear(DIM, DIM)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b_, n, c = x.shape
        qkv = self.qkv(x).reshape(b_, n, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        bias = bias.view(n, n, -1).permute(2, 0, 1).contiguous()
        attn = attn + bias.unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            attn = attn.view(b_ // windows, windows, HEADS, n, n) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, HEADS, n, n)
        attn = self.softmax(attn)
        result: Tensor = self.proj((attn @ v).transpose(1, 2).reshape(b_, n, c))
        return result


class SwinTransformerBlock(nn.Module):
    """Attention in the windows of a picture, rolled by half a window or not, and an MLP."""

    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift = shift
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn, self.mlp = WindowAttention(), Mlp(2 * DIM)

    def calculate_mask(self, h: int, w: int) -> Tensor:
        img_mask = torch.zeros((1, h, w, 1))
        slices = (slice(0, -WINDOW), slice(-WINDOW, -self.shift), slice(-self.shift, None))
        cnt = 0
        for rows in slices:
            for columns in slices:
                img_mask[:, rows, columns, :] = cnt
                cnt += 1
        mask_windows = window_partition(img_mask, WINDOW).view(-1, WINDOW * WINDOW)
        attn_mask = mask_windows.unsqueeze(1) - mask_windows.unsqueeze(2)
        return attn_mask.masked_fill(attn_mask != 0, -100.0).masked_fill(attn_mask == 0, 0.0)

    def forward(self, x: Tensor, h: int, w: int) -> Tensor:
        b, _, c = x.shape
        shortcut = x
        x = self.norm1(x).view(b, h, w, c)
        if self.shift > 0:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = window_partition(x, WINDOW).view(-1, WINDOW * WINDOW, c)
        # Pictures are of any size, so the mask is built anew wherever it is needed.
        mask = self.calculate_mask(h, w).to(x.device) if self.shift > 0 else None
        windows = self.attn(windows, mask=mask).view(-1, WINDOW, WINDOW, c)
        x = window_reverse(windows, WINDOW, h, w)
        if self.shift > 0:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        x = shortcut + x.view(b, h * w, c)
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class RSTB(nn.Module):
    """Blocks by turns straight and shifted, a convolution and a residual."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinTransformerBlock(0 if i % 2 == 0 else WINDOW // 2) for i in range(depth)
        )
        self.conv = nn.Conv2d(DIM, DIM, 3, 1, 1)

    def forward(self, x: Tensor, h: int, w: int) -> Tensor:
        y = x
        for block in self.blocks:
            y = block(y, h, w)
        y = self.conv(y.transpose(1, 2).view(-1, DIM, h, w))
        result: Tensor = y.flatten(2).transpose(1, 2) + x
        return result


class SwinIR(nn.Module):
    """A picture of any size to one of twice its height and width."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.tensor(MEAN).view(1, 3, 1, 1)
        self.conv_first = nn.Conv2d(3, DIM, 3, 1, 1)
        self.patch_norm, self.norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.layers = nn.ModuleList(RSTB(2) for _ in range(2))
        self.conv_after_body = nn.Conv2d(DIM, DIM, 3, 1, 1)
        self.upsample = nn.Sequential(
            nn.Conv2d(DIM, UPSCALE**2 * 3, 3, 1, 1), nn.PixelShuffle(UPSCALE)
        )

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        bottom, right = (WINDOW - height % WINDOW) % WINDOW, (WINDOW - width % WINDOW) % WINDOW
        x = functional.pad(x, (0, right, 0, bottom), "reflect")
        h, w = height + bottom, width + right
        self.mean = self.mean.type_as(x)
        first = self.conv_first(x - self.mean)
        y = self.patch_norm(first.flatten(2).transpose(1, 2))
        for layer in self.layers:
            y = layer(y, h, w)
        y = self.norm(y).transpose(1, 2).view(-1, DIM, h, w)
        x = self.upsample(self.conv_after_body(y) + first) + self.mean
        return x[:, :, : height * UPSCALE, : width * UPSCALE]


def build() -> nn.Module:
    torch.manual_seed(0)
    model = SwinIR()
    for m in model.modules():
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.1)
    return model.eval()
