"""RedNet: involutions, kernels made from each place and applied to the unfolded picture."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models import norms

STEM = 64
WIDTHS = (128, 256, 384)
DEPTHS = (1, 2, 1)
KERNEL = 7
GROUP_CHANNELS = 16
CLASSES = 100


class ConvModule(nn.Module):
    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, act: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.activate = nn.ReLU(inplace=True) if act else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(self.conv(x))
        if self.activate is not None:
            x = self.activate(x)
        return x


class Involution(nn.Module):
    def __init__(self, channels: int, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.channels = kernel_size, stride, channels
        self.groups = channels // GROUP_CHANNELS
        self.conv1 = ConvModule(channels, channels // 4, 1)
        self.conv2 = nn.Conv2d(channels // 4, kernel_size**2 * self.groups, 1)
        if stride > 1:
            self.avgpool = nn.AvgPool2d(stride, stride)
        self.unfold = nn.Unfold(kernel_size, 1, (kernel_size - 1) // 2, stride)

    def forward(self, x: Tensor) -> Tensor:
        weight: Tensor = self.conv2(self.conv1(x if self.stride == 1 else self.avgpool(x)))
        b, _, h, w = weight.shape
        weight = weight.view(b, self.groups, self.kernel_size**2, h, w).unsqueeze(2)
        out: Tensor = self.unfold(x)
        out = out.view(b, self.groups, GROUP_CHANNELS, self.kernel_size**2, h, w)
        return (weight * out).sum(dim=3).view(b, self.channels, h, w)


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        mid = outputs // 4
        self.conv1 = nn.Conv2d(inputs, mid, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = Involution(mid, KERNEL, stride)
        self.bn2 = nn.BatchNorm2d(mid)
        self.conv3 = nn.Conv2d(mid, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            layers: list[nn.Module] = []
            if stride != 1:
                layers.append(nn.AvgPool2d(stride, stride, ceil_mode=True, count_include_pad=False))
            layers += [nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
            self.downsample = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out = out + identity
        y: Tensor = self.relu(out)
        return y


class RedNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            ConvModule(3, STEM // 2, 3, stride=2),
            Involution(STEM // 2, 3, 1),
            nn.BatchNorm2d(STEM // 2),
            nn.ReLU(inplace=True),
            ConvModule(STEM // 2, STEM, 3),
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        stages: list[nn.Module] = []
        inputs = STEM
        for i, (width, depth) in enumerate(zip(WIDTHS, DEPTHS)):
            for j in range(depth):
                stages.append(Bottleneck(inputs, width, 2 if i and j == 0 else 1))
                inputs = width
        self.stages = nn.Sequential(*stages)
        self.gap = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(WIDTHS[-1], CLASSES)

    def forward(self, img: Tensor) -> Tensor:
        x = self.stages(self.maxpool(self.stem(img)))
        x = self.gap(x)
        y: Tensor = self.fc(x.view(x.size(0), -1))
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    net = RedNet()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        elif isinstance(module, nn.BatchNorm2d):
            norms.vary(module)
    return net.eval()
