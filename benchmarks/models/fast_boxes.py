"""Fast_boxes: YOLOv8, an anchor-free detector that reads distances off distributions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

CLASSES = 80
BINS = 16
WIDTHS = (16, 32, 64, 128, 256)
STRIDES = (8, 16, 32)
SIZE = 128


class Conv(nn.Module):
    def __init__(self, c1: int, c2: int, k: int = 1, s: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(c2, eps=1e-3, momentum=0.03)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.bn(self.conv(x)))
        return y


class Bottleneck(nn.Module):
    def __init__(self, c: int, shortcut: bool) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(c, c, 3), Conv(c, c, 3)
        self.add = shortcut

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.cv2(self.cv1(x)) if self.add else self.cv2(self.cv1(x))
        return y


class C2f(nn.Module):
    """A cross-stage block that keeps what each of its bottlenecks gave."""

    def __init__(self, c1: int, c2: int, n: int = 1, shortcut: bool = False) -> None:
        super().__init__()
        self.c = c2 // 2
        self.cv1 = Conv(c1, 2 * self.c)
        self.cv2 = Conv((2 + n) * self.c, c2)
        self.m = nn.ModuleList(Bottleneck(self.c, shortcut) for _ in range(n))

    def forward(self, x: Tensor) -> Tensor:
        y = list(self.cv1(x).chunk(2, 1))
        y.extend(m(y[-1]) for m in self.m)
        result: Tensor = self.cv2(torch.cat(y, 1))
        return result


class SPPF(nn.Module):
    def __init__(self, c1: int, c2: int, k: int = 5) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(c1, c1 // 2), Conv(c1 // 2 * 4, c2)
        self.m = nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2)

    def forward(self, x: Tensor) -> Tensor:
        y = [self.cv1(x)]
        y.extend(self.m(y[-1]) for _ in range(3))
        result: Tensor = self.cv2(torch.cat(y, 1))
        return result


class DFL(nn.Module):
    """The expected value of each side's distribution, as a convolution that isn't trained."""

    def __init__(self, c1: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c1, 1, 1, bias=False).requires_grad_(False)
        self.conv.weight.data[:] = torch.arange(c1, dtype=torch.float).view(1, c1, 1, 1)
        self.c1 = c1

    def forward(self, x: Tensor) -> Tensor:
        b, _, a = x.shape
        y: Tensor = self.conv(x.view(b, 4, self.c1, a).transpose(2, 1).softmax(1)).view(b, 4, a)
        return y


class Detect(nn.Module):
    """The heads of three levels and the decoding of their boxes."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.no = CLASSES + 4 * BINS
        c2, c3 = max(16, channels[0] // 4, 4 * BINS), max(channels[0], min(CLASSES, 100))
        self.cv2, self.cv3 = (
            nn.ModuleList(
                nn.Sequential(Conv(c, m, 3), Conv(m, m, 3), nn.Conv2d(m, o, 1)) for c in channels
            )
            for m, o in ((c2, 4 * BINS), (c3, CLASSES))
        )
        self.dfl = DFL(BINS)

    def forward(self, x: list[Tensor]) -> tuple[Tensor, Tensor]:
        for i in range(len(x)):
            x[i] = torch.cat((self.cv2[i](x[i]), self.cv3[i](x[i])), 1)
        anchors, strides = (t.transpose(0, 1) for t in make_anchors(x))
        both = torch.cat([xi.view(x[0].shape[0], self.no, -1) for xi in x], 2)
        box, cls = torch.split(both, [4 * BINS, CLASSES], 1)
        lt, rb = self.dfl(box).chunk(2, 1)
        x1y1, x2y2 = anchors.unsqueeze(0) - lt, anchors.unsqueeze(0) + rb
        dbox = torch.cat(((x1y1 + x2y2) / 2, x2y2 - x1y1), 1) * strides
        return dbox / SIZE, cls.sigmoid()


def make_anchors(feats: list[Tensor], offset: float = 0.5) -> tuple[Tensor, Tensor]:
    """The cells' centres, in cells, and their strides."""
    points, strides = [], []
    for feat, stride in zip(feats, STRIDES, strict=True):
        h, w = feat.shape[2:]
        sx = torch.arange(end=w, device=feat.device, dtype=feat.dtype) + offset
        sy = torch.arange(end=h, device=feat.device, dtype=feat.dtype) + offset
        grid_y, grid_x = torch.meshgrid(sy, sx, indexing="ij")
        points.append(torch.stack((grid_x, grid_y), -1).view(-1, 2))
        strides.append(torch.full((h * w, 1), stride, dtype=feat.dtype, device=feat.device))
    return torch.cat(points), torch.cat(strides)


class Detector(nn.Module):
    """A picture to boxes (centre and size, parts of the picture) and the classes' scores."""

    def __init__(self) -> None:
        super().__init__()
        a, b, c, d, e = WIDTHS
        self.p3 = nn.Sequential(
            Conv(3, a, 3, 2), Conv(a, b, 3, 2), C2f(b, b, 1, True), Conv(b, c, 3, 2),
            C2f(c, c, 2, True),
        )  # fmt: skip
        self.p4 = nn.Sequential(Conv(c, d, 3, 2), C2f(d, d, 2, True))
        self.p5 = nn.Sequential(Conv(d, e, 3, 2), C2f(e, e, 1, True), SPPF(e, e))
        self.up = nn.Upsample(None, 2, "nearest")
        self.up4, self.up3 = C2f(d + e, d), C2f(c + d, c)
        self.down4, self.down5 = Conv(c, c, 3, 2), Conv(d, d, 3, 2)
        self.out4, self.out5 = C2f(c + d, d), C2f(d + e, e)
        self.detect = Detect((c, d, e))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        p3 = self.p3(images)
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        t4 = self.up4(torch.cat([self.up(p5), p4], 1))
        n3 = self.up3(torch.cat([self.up(t4), p3], 1))
        n4 = self.out4(torch.cat([self.down4(n3), t4], 1))
        n5 = self.out5(torch.cat([self.down5(n4), p5], 1))
        result: tuple[Tensor, Tensor] = self.detect([n3, n4, n5])
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Detector()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.8, 1.4)
            m.running_mean = torch.rand(m.num_features) * 0.1
            m.running_var = torch.rand(m.num_features) + 0.5
        elif isinstance(m, nn.Conv2d) and m.weight.requires_grad:
            nn.init.normal_(m.weight, std=1.5 / math.sqrt(m.weight[0].numel()))
        if isinstance(m, nn.Conv2d) and m.bias is not None:
            m.weight.data *= 10
    return model.eval()
