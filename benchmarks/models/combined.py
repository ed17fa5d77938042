"""CoAtNet: two stages of MBConv, then two of attention with a gathered table of relative biases."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from benchmarks.models import norms

SIZE = 160
WIDTHS = (32, 48, 96, 160, 256)
DEPTH = 2
CLASSES = 100
HEADS = 8
HEAD = 32


class PreNorm(nn.Module):
    def __init__(self, dim: int, fn: nn.Module, norm: type[nn.Module]) -> None:
        super().__init__()
        self.norm = norm(dim)
        self.fn = fn

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fn(self.norm(x))
        return y


class SE(nn.Module):
    def __init__(self, inp: int, oup: int, expansion: float = 0.25) -> None:
        super().__init__()
        hidden = int(inp * expansion)
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        down, up = nn.Linear(oup, hidden, bias=False), nn.Linear(hidden, oup, bias=False)
        self.fc = nn.Sequential(down, nn.GELU(), up, nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        scaled: Tensor = x * y
        return scaled


class MBConv(nn.Module):
    def __init__(self, inp: int, oup: int, downsample: bool, expansion: int = 4) -> None:
        super().__init__()
        self.downsample = downsample
        stride = 2 if downsample else 1
        hidden = inp * expansion
        if downsample:
            self.pool = nn.MaxPool2d(3, 2, 1)
            self.proj = nn.Conv2d(inp, oup, 1, 1, 0, bias=False)
        conv = nn.Sequential(
            nn.Conv2d(inp, hidden, 1, stride, 0, bias=False),
            nn.BatchNorm2d(hidden),
            nn.GELU(),
            nn.Conv2d(hidden, hidden, 3, 1, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.GELU(),
            SE(inp, hidden),
            nn.Conv2d(hidden, oup, 1, 1, 0, bias=False),
            nn.BatchNorm2d(oup),
        )
        self.conv = PreNorm(inp, conv, nn.BatchNorm2d)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        return self.proj(self.pool(x)) + y if self.downsample else x + y


class Attention(nn.Module):
    relative_index: Tensor

    def __init__(self, inp: int, oup: int, ih: int, iw: int) -> None:
        super().__init__()
        self.scale = HEAD**-0.5
        table = torch.randn((2 * ih - 1) * (2 * iw - 1), HEADS) * 0.5
        self.relative_bias_table = nn.Parameter(table)
        coords = torch.tensor(list(itertools.product(range(ih), range(iw)))).t()
        relative = coords[:, :, None] - coords[:, None, :]
        relative[0] += ih - 1
        relative[1] += iw - 1
        relative[0] *= 2 * iw - 1
        self.register_buffer("relative_index", relative.sum(0).flatten().unsqueeze(1))
        self.to_qkv = nn.Linear(inp, HEADS * HEAD * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(HEADS * HEAD, oup), nn.Dropout(0.0))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (
            t.view(b, n, HEADS, HEAD).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        bias = self.relative_bias_table.gather(0, self.relative_index.repeat(1, HEADS))
        dots = dots + bias.view(n, n, HEADS).permute(2, 0, 1).unsqueeze(0)
        out = torch.matmul(dots.softmax(dim=-1), v)
        y: Tensor = self.to_out(out.transpose(1, 2).reshape(b, n, HEADS * HEAD))
        return y


class Transformer(nn.Module):
    def __init__(self, inp: int, oup: int, side: int, downsample: bool) -> None:
        super().__init__()
        self.downsample = downsample
        if downsample:
            self.pool1 = nn.MaxPool2d(3, 2, 1)
            self.pool2 = nn.MaxPool2d(3, 2, 1)
            self.proj = nn.Conv2d(inp, oup, 1, 1, 0, bias=False)
        self.attn = PreNorm(inp, Attention(inp, oup, side, side), nn.LayerNorm)
        mlp = nn.Sequential(nn.Linear(oup, inp * 4), nn.GELU(), nn.Linear(inp * 4, oup))
        self.ff = PreNorm(oup, mlp, nn.LayerNorm)

    def around(self, fn: nn.Module, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        y: Tensor = fn(x.flatten(2).transpose(1, 2))
        return y.transpose(1, 2).reshape(b, -1, h, w)

    def forward(self, x: Tensor) -> Tensor:
        if self.downsample:
            x = self.proj(self.pool1(x)) + self.around(self.attn, self.pool2(x))
        else:
            x = x + self.around(self.attn, x)
        return x + self.around(self.ff, x)


class CoAtNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i in range(DEPTH):
            conv = nn.Conv2d(WIDTHS[0] if i else 3, WIDTHS[0], 3, 1 if i else 2, 1, bias=False)
            layers += [conv, nn.BatchNorm2d(WIDTHS[0]), nn.GELU()]
        for stage in range(1, 5):
            for i in range(DEPTH):
                inp, oup = WIDTHS[stage if i else stage - 1], WIDTHS[stage]
                if stage < 3:
                    layers.append(MBConv(inp, oup, i == 0))
                else:
                    layers.append(Transformer(inp, oup, SIZE >> (stage + 1), i == 0))
        self.layers = nn.Sequential(*layers)
        self.pool = nn.AvgPool2d(SIZE // 32, 1)
        self.fc = nn.Linear(WIDTHS[-1], CLASSES, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.layers(x)).view(-1, WIDTHS[-1])
        y: Tensor = self.fc(x)
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    net = CoAtNet()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        elif isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight)
        elif isinstance(module, nn.BatchNorm2d):
            norms.vary(module)
    nn.init.normal_(net.fc.weight, 0.0, 0.03)
    return net.eval()
