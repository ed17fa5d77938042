"""Dense_boxes: FCOS, boxes at every pixel of a feature pyramid, the best of each level kept."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = 20
WIDTHS = (24, 32, 48, 64, 96)
PYRAMID = 64
STRIDES = (8, 16, 32, 64, 128)
SIZE = (128, 192)
CANDIDATES = 40
DETECTIONS = 32
PRIOR = 0.05


class FrozenBatchNorm2d(nn.Module):
    """Batch norm whose four vectors are buffers."""

    def __init__(self, n: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Buffer(torch.rand(n) * 0.5 + 0.75)
        self.bias = nn.Buffer(torch.randn(n) * 0.1)
        self.running_mean = nn.Buffer(torch.rand(n) * 0.1)
        self.running_var = nn.Buffer(torch.rand(n) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        w, b = self.weight.reshape(1, -1, 1, 1), self.bias.reshape(1, -1, 1, 1)
        rm, rv = self.running_mean.reshape(1, -1, 1, 1), self.running_var.reshape(1, -1, 1, 1)
        scale = w * (rv + self.eps).rsqrt()
        return x * scale + (b - rm * scale)


class Bottleneck(nn.Module):
    def __init__(self, i: int, m: int, stride: int) -> None:
        super().__init__()
        o, norm = m * 2, FrozenBatchNorm2d
        self.conv1, self.bn1 = nn.Conv2d(i, m, 1, bias=False), norm(m)
        self.conv2, self.bn2 = nn.Conv2d(m, m, 3, stride, 1, bias=False), norm(m)
        self.conv3, self.bn3 = nn.Conv2d(m, o, 1, bias=False), norm(o)
        self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), norm(o))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        identity = self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        result: Tensor = self.relu(out)
        return result


class Scale(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([value]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


class Head(nn.Module):
    """Two towers that the levels share; each level has a scale of its own."""

    def __init__(self) -> None:
        super().__init__()
        towers: list[list[nn.Module]] = [[], []]
        for tower in towers * 2:
            tower.append(nn.Conv2d(PYRAMID, PYRAMID, 3, padding=1))
            tower.append(nn.GroupNorm(32, PYRAMID))
            tower.append(nn.ReLU())
        self.cls_tower, self.bbox_tower = (nn.Sequential(*tower) for tower in towers)
        self.cls_logits = nn.Conv2d(PYRAMID, CLASSES, 3, padding=1)
        prior = torch.full((CLASSES,), -math.log((1 - PRIOR) / PRIOR))
        self.cls_logits.bias = nn.Parameter(prior)
        self.bbox_pred = nn.Conv2d(PYRAMID, 4, 3, padding=1)
        self.ctrness = nn.Conv2d(PYRAMID, 1, 3, padding=1)
        self.scales = nn.ModuleList(Scale(1.0 + 0.1 * i) for i in range(len(STRIDES)))

    def forward(self, x: Tensor, level: int) -> tuple[Tensor, Tensor, Tensor]:
        cls, box = self.cls_tower(x), self.bbox_tower(x)
        reg = functional.relu(self.scales[level](self.bbox_pred(box))) * STRIDES[level]
        return self.cls_logits(cls), reg, self.ctrness(box)


def locations(h: int, w: int, stride: int) -> Tensor:
    shifts_x = torch.arange(0, w * stride, step=stride, dtype=torch.float32)
    shifts_y = torch.arange(0, h * stride, step=stride, dtype=torch.float32)
    shift_y, shift_x = torch.meshgrid(shifts_y, shifts_x, indexing="ij")
    return torch.stack((shift_x.reshape(-1), shift_y.reshape(-1)), dim=1) + stride // 2


def select(head: tuple[Tensor, Tensor, Tensor], stride: int) -> tuple[Tensor, Tensor, Tensor]:
    """A level's best pairs of a place and a class: boxes, scores and classes from 1."""
    cls, reg, ctr = head
    n, c, h, w = cls.shape
    scores = cls.view(n, c, h, w).permute(0, 2, 3, 1).reshape(n, -1, c).sigmoid()
    sides = reg.view(n, 4, h, w).permute(0, 2, 3, 1).reshape(n, -1, 4)
    centre = ctr.view(n, 1, h, w).permute(0, 2, 3, 1).reshape(n, -1).sigmoid()
    scores = (scores * centre[:, :, None]).reshape(n, -1)
    top, index = scores.topk(min(CANDIDATES, h * w * c), dim=1, sorted=False)
    place, label = index // c, index % c + 1
    sides = torch.gather(sides, 1, place.unsqueeze(-1).expand(-1, -1, 4))
    at = locations(h, w, stride)[place]
    x1, y1 = at[..., 0] - sides[..., 0], at[..., 1] - sides[..., 1]
    x2, y2 = at[..., 0] + sides[..., 2], at[..., 1] + sides[..., 3]
    x1, x2 = x1.clamp(0, SIZE[1] - 1), x2.clamp(0, SIZE[1] - 1)
    y1, y2 = y1.clamp(0, SIZE[0] - 1), y2.clamp(0, SIZE[0] - 1)
    return torch.stack([x1, y1, x2, y2], dim=-1), torch.sqrt(top), label


class Detector(nn.Module):
    """A picture to its best boxes in pixels' hundreds, their scores and their classes."""

    def __init__(self) -> None:
        super().__init__()
        stem, *widths = WIDTHS
        self.stem = nn.Conv2d(3, stem, 7, 2, 3, bias=False)
        self.bn, self.pool = FrozenBatchNorm2d(stem), nn.MaxPool2d(3, 2, 1)
        inputs = [stem] + [2 * width for width in widths]
        self.layers = nn.ModuleList(
            Bottleneck(i, width, 1 if n == 0 else 2)
            for n, (i, width) in enumerate(zip(inputs, widths, strict=False))
        )
        self.inner = nn.ModuleList(nn.Conv2d(i, PYRAMID, 1) for i in inputs[2:])
        self.outer = nn.ModuleList(nn.Conv2d(PYRAMID, PYRAMID, 3, 1, 1) for _ in range(3))
        self.p6, self.p7 = (nn.Conv2d(PYRAMID, PYRAMID, 3, 2, 1) for _ in range(2))
        self.head = Head()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.pool(functional.relu_(self.bn(self.stem(images))))
        features = []
        for layer in self.layers:
            x = layer(x)
            features.append(x)
        last = self.inner[2](features[3])
        levels = [self.outer[2](last)]
        for i in (1, 0):
            lateral = self.inner[i](features[i + 1])
            last = lateral + functional.interpolate(last, size=lateral.shape[-2:], mode="nearest")
            levels.insert(0, self.outer[i](last))
        levels.append(self.p6(levels[2]))
        levels.append(self.p7(functional.relu(levels[3])))
        kept = [select(self.head(x, i), STRIDES[i]) for i, x in enumerate(levels)]
        boxes, scores, labels = (torch.cat(parts, dim=1) for parts in zip(*kept, strict=True))
        scores, index = torch.topk(scores, DETECTIONS, dim=1)
        boxes = boxes.gather(1, index[..., None].repeat(1, 1, 4))
        return boxes / 100, scores, torch.gather(labels, 1, index)


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Detector()
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.normal_(m.weight, std=1 / math.sqrt(m.weight[0].numel()))
    model.head.cls_logits.weight.data *= 3
    return model.eval()
