"""Driving: PIDNet, three branches that name the parts of a street."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 32
CLASSES = 19


def after(i: int, o: int, k: int = 1, s: int = 1, relu: bool = False) -> nn.Sequential:
    """A convolution and its norm, with a ReLU on request."""
    layers = [nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o, momentum=0.1)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


def before(i: int, o: int, k: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution whose norm and ReLU come first."""
    conv = nn.Conv2d(i, o, k, padding=k // 2, groups=groups, bias=False)
    return [nn.BatchNorm2d(i, momentum=0.1), nn.ReLU(inplace=True), conv]


class Block(nn.Module):
    """A residual block, which leaves its last ReLU to who takes its output on request."""

    def __init__(self, layers: nn.Sequential, down: nn.Module | None, no_relu: bool) -> None:
        super().__init__()
        self.layers, self.downsample, self.no_relu = layers, down, no_relu
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        residual = x
        out: Tensor = self.layers(x)
        if self.downsample is not None:
            residual = self.downsample(x)
        out += residual
        return out if self.no_relu else functional.relu(out, inplace=True)


def basic(i: int, o: int, s: int = 1, no_relu: bool = False) -> Block:
    down = None if s == 1 and i == o else after(i, o, 1, s)
    return Block(nn.Sequential(after(i, o, 3, s, True), after(o, o, 3)), down, no_relu)


def bottleneck(i: int, p: int, s: int = 1) -> Block:
    layers = nn.Sequential(after(i, p, relu=True), after(p, p, 3, s, True), after(p, p * 2))
    return Block(layers, after(i, p * 2, 1, s), True)


def resize(x: Tensor, like: Tensor) -> Tensor:
    size = [like.shape[-2], like.shape[-1]]
    return functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


class PAPPM(nn.Module):
    """Averages over four sizes of windows, then one convolution in four groups."""

    def __init__(self, i: int, branch: int, o: int) -> None:
        super().__init__()
        pools = [nn.AvgPool2d(k, s, k // 2) for k, s in ((5, 2), (9, 4), (17, 8))]
        self.scale0 = nn.Sequential(*before(i, branch))
        self.scales = nn.ModuleList(
            nn.Sequential(p, *before(i, branch)) for p in [*pools, nn.AdaptiveAvgPool2d((1, 1))]
        )
        self.process = nn.Sequential(*before(branch * 4, branch * 4, 3, groups=4))
        self.compression = nn.Sequential(*before(branch * 5, o))
        self.shortcut = nn.Sequential(*before(i, o))

    def forward(self, x: Tensor) -> Tensor:
        x_ = self.scale0(x)
        scale_out = self.process(torch.cat([resize(s(x), x) + x_ for s in self.scales], 1))
        out: Tensor = self.compression(torch.cat([x_, scale_out], 1)) + self.shortcut(x)
        return out


class PagFM(nn.Module):
    """Lets a pixel take from the other branch as much as the two agree."""

    def __init__(self, i: int, middle: int) -> None:
        super().__init__()
        self.f_x, self.f_y = after(i, middle), after(i, middle)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        y_q, x_k = resize(self.f_y(y), x), self.f_x(x)
        similar = torch.sigmoid(torch.sum(x_k * y_q, dim=1).unsqueeze(1))
        return (1 - similar) * x + similar * resize(y, x)


class LightBag(nn.Module):
    """The boundaries say where details count and where the context does."""

    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.conv_p, self.conv_i = after(i, o), after(i, o)

    def forward(self, p: Tensor, i: Tensor, d: Tensor) -> Tensor:
        edge = torch.sigmoid(d)
        result: Tensor = self.conv_p((1 - edge) * i + p) + self.conv_i(i + edge * p)
        return result


class PIDNet(nn.Module):
    """A picture to the classes' logits and the boundaries', at an eighth and at full size."""

    def __init__(self, m: int = WIDTH) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, m, 3, 2, 1), nn.BatchNorm2d(m), nn.ReLU(True),
            nn.Conv2d(m, m, 3, 2, 1), nn.BatchNorm2d(m), nn.ReLU(True),
        )  # fmt: skip
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = basic(m, m, no_relu=True)
        self.layer2 = nn.Sequential(basic(m, m * 2, 2), basic(m * 2, m * 2, no_relu=True))
        self.layer3 = nn.Sequential(basic(m * 2, m * 4, 2), basic(m * 4, m * 4, no_relu=True))
        self.layer4 = nn.Sequential(basic(m * 4, m * 8, 2), basic(m * 8, m * 8, no_relu=True))
        self.layer5 = bottleneck(m * 8, m * 8, 2)
        self.compression3, self.compression4 = after(m * 4, m * 2), after(m * 8, m * 2)
        self.pag3, self.pag4 = PagFM(m * 2, m), PagFM(m * 2, m)
        self.layer3_, self.layer4_ = basic(m * 2, m * 2, 1, True), basic(m * 2, m * 2, 1, True)
        self.layer5_ = bottleneck(m * 2, m * 2)
        self.layer3_d, self.layer4_d = basic(m * 2, m), bottleneck(m, m)
        self.diff3, self.diff4 = after(m * 4, m, 3), after(m * 8, m * 2, 3)
        self.layer5_d = bottleneck(m * 2, m * 2)
        self.spp, self.dfm = PAPPM(m * 16, 96, m * 4), LightBag(m * 4, m * 4)
        self.seg = nn.Sequential(*before(m * 4, m * 4, 3), *before(m * 4, CLASSES))
        self.edge = nn.Sequential(*before(m * 2, m, 3), *before(m, 1))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.conv1(image)
        x = self.relu(self.layer2(self.relu(self.layer1(x))))
        x_, x_d = self.layer3_(x), self.layer3_d(x)
        x = self.relu(self.layer3(x))
        x_ = self.pag3(x_, self.compression3(x))
        x_d = x_d + resize(self.diff3(x), x_d)
        x = self.relu(self.layer4(x))
        x_, x_d = self.layer4_(self.relu(x_)), self.layer4_d(self.relu(x_d))
        x_ = self.pag4(x_, self.compression4(x))
        x_d = x_d + resize(self.diff4(x), x_d)
        boundaries = self.edge(x_d)
        x_, x_d = self.layer5_(self.relu(x_)), self.layer5_d(self.relu(x_d))
        x = resize(self.spp(self.layer5(x)), x_)
        return resize(self.seg(self.dfm(x_, x, x_d)), image), boundaries


def build() -> nn.Module:
    torch.manual_seed(0)
    model = PIDNet()
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.0)
            m.running_mean = torch.rand(m.num_features) * 0.1
            m.running_var = torch.rand(m.num_features) + 0.5
    return model.eval()
