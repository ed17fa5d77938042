"""Fusion: EfficientDet, a BiFPN with fast normalized fusion between five levels."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 64
CLASSES = 20
ANCHORS = 9
SIZE = 128


def same(x: Tensor, k: int, s: int) -> Tensor:
    """Pads as TensorFlow's SAME does, more after than before."""
    h, w = x.shape[-2:]
    extra_h = (math.ceil(w / s) - 1) * s - w + k
    extra_v = (math.ceil(h / s) - 1) * s - h + k
    left, top = extra_h // 2, extra_v // 2
    return functional.pad(x, [left, extra_h - left, top, extra_v - top])


def norm(size: int) -> nn.Module:
    return nn.BatchNorm2d(size, eps=1e-3, momentum=0.01)


def swish(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


class SameConv(nn.Module):
    def __init__(self, i: int, o: int, k: int, s: int = 1, g: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, s, bias=bias, groups=g)
        self.k, self.s = k, s

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(same(x, self.k, self.s))
        return y


class MBConv(nn.Module):
    def __init__(self, i: int, o: int, k: int, s: int, expand: int = 6) -> None:
        super().__init__()
        m, r = i * expand, max(1, i // 4)
        self.expand, self.bn0 = SameConv(i, m, 1, bias=False), norm(m)
        self.depth, self.bn1 = SameConv(m, m, k, s, m, False), norm(m)
        self.reduce, self.excite = SameConv(m, r, 1), SameConv(r, m, 1)
        self.project, self.bn2 = SameConv(m, o, 1, bias=False), norm(o)
        self.skip = s == 1 and i == o

    def forward(self, inputs: Tensor) -> Tensor:
        x = swish(self.bn1(self.depth(swish(self.bn0(self.expand(inputs))))))
        squeezed = functional.adaptive_avg_pool2d(x, 1)
        x = torch.sigmoid(self.excite(swish(self.reduce(squeezed)))) * x
        x = self.bn2(self.project(x))
        result: Tensor = x + inputs if self.skip else x
        return result


def separable(outputs: int = CHANNELS, normed: bool = True) -> nn.Sequential:
    depth = SameConv(CHANNELS, CHANNELS, 3, g=CHANNELS, bias=False)
    point = SameConv(CHANNELS, outputs, 1)
    return nn.Sequential(depth, point, *([norm(outputs)] if normed else []))


class BiFPN(nn.Module):
    """Top down and bottom up once, each sum weighted by parameters that are at least zero."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = (nn.ModuleList(separable() for _ in range(4)) for _ in range(2))
        self.w1 = nn.ParameterList(torch.rand(2) + 0.5 for _ in range(4))
        self.w2 = nn.ParameterList(torch.rand(size) + 0.5 for size in (3, 3, 3, 2))
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        tops = [levels[4]]
        for i in (3, 2, 1, 0):
            w = functional.relu(self.w1[i])
            w = w / (torch.sum(w, dim=0) + 1e-4)
            x = swish(w[0] * levels[i] + w[1] * self.upsample(tops[0]))
            tops.insert(0, self.down[i](x))
        outs = [tops[0]]
        for i in range(4):
            w = functional.relu(self.w2[i])
            w = w / (torch.sum(w, dim=0) + 1e-4)
            below = functional.max_pool2d(same(outs[-1], 3, 2), 3, 2)
            x = w[0] * levels[i + 1] + w[1] * (tops[i + 1] if i < 3 else below)
            outs.append(self.up[i](swish(x + w[2] * below if i < 3 else x)))
        return outs


class Head(nn.Module):
    """Convolutions that the levels share, with batch norms of their own."""

    def __init__(self, values: int) -> None:
        super().__init__()
        self.values = values
        self.convs = nn.ModuleList(separable(normed=False) for _ in range(2))
        self.bns = nn.ModuleList(norm(CHANNELS) for _ in range(2 * 5))
        self.header = separable(ANCHORS * values, normed=False)

    def forward(self, levels: list[Tensor]) -> Tensor:
        feats = []
        for level, feat in enumerate(levels):
            for i, conv in enumerate(self.convs):
                feat = swish(self.bns[2 * level + i](conv(feat)))
            feat = self.header(feat).permute(0, 2, 3, 1).contiguous()
            feats.append(feat.view(feat.shape[0], -1, self.values))
        return torch.cat(feats, dim=1)


def boxes_at(level: int) -> Tensor:
    """The anchors of a level: y, x, height and width in pixels."""
    stride = 2**level
    shapes = itertools.product((1.0, 2 ** (1 / 3), 2 ** (2 / 3)), (1.0, 1.4, 0.7))
    sizes = torch.tensor([(4 * stride * s / r, 4 * stride * s * r) for s, r in shapes])
    centres = torch.arange(SIZE // stride) * stride + stride / 2
    y, x = torch.meshgrid(centres, centres, indexing="ij")
    cells = torch.stack([y, x], -1).reshape(-1, 1, 2).expand(-1, ANCHORS, 2)
    return torch.cat([cells, sizes.expand(len(cells), ANCHORS, 2)], -1).reshape(-1, 4)


class Detector(nn.Module):
    """A picture to every anchor's scores and box (corners, parts of the picture)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn = SameConv(3, 16, 3, 2, bias=False), norm(16)
        self.p3 = nn.Sequential(MBConv(16, 24, 3, 2), MBConv(24, 24, 3, 1), MBConv(24, 40, 5, 2))
        self.p4 = nn.Sequential(MBConv(40, 80, 3, 2), MBConv(80, 80, 3, 1))
        self.p5 = nn.Sequential(MBConv(80, 112, 5, 2))
        self.lateral = nn.ModuleList(
            nn.Sequential(SameConv(i, CHANNELS, 1), norm(CHANNELS)) for i in (40, 80, 112, 112)
        )
        self.fusions = nn.ModuleList(BiFPN() for _ in range(2))
        self.classes, self.sides = Head(CLASSES), Head(4)
        self.anchors = nn.Buffer(torch.cat([boxes_at(level) for level in range(3, 8)])[None])

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        p3 = self.p3(swish(self.bn(self.stem(images))))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        levels = [lateral(x) for lateral, x in zip(self.lateral, (p3, p4, p5, p5), strict=True)]
        levels[3] = functional.max_pool2d(same(levels[3], 3, 2), 3, 2)
        levels.append(functional.max_pool2d(same(levels[3], 3, 2), 3, 2))
        for fusion in self.fusions:
            levels = fusion(levels)
        regression, anchors = self.sides(levels), self.anchors
        y, x = (regression[..., i] * anchors[..., i + 2] + anchors[..., i] for i in (0, 1))
        h, w = (regression[..., i].exp() * anchors[..., i] for i in (2, 3))
        boxes = torch.stack([x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0], dim=2)
        boxes[:, :, :2] = torch.clamp(boxes[:, :, :2], min=0)
        boxes[:, :, 2:] = torch.clamp(boxes[:, :, 2:], max=SIZE - 1)
        return torch.sigmoid(self.classes(levels)), boxes / SIZE


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Detector()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 1.0, 2.0)
            m.running_mean = torch.rand(m.num_features) * 0.1
            m.running_var = torch.rand(m.num_features) + 0.5
        elif isinstance(m, nn.Conv2d):
            nn.init.normal_(m.weight, std=1.05 / math.sqrt(m.weight[0].numel()))
    return model.eval()
