"""SKNet, CBAM and ECA: a residual network whose blocks weigh kernels, places and channels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models import norms

CLASSES = 100
BRANCHES = 2
GROUPS = 32
REDUCTION = 16


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    if stride == 1 and inputs == outputs:
        return nn.Sequential()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class SKConv(nn.Module):
    def __init__(self, features: int, stride: int) -> None:
        super().__init__()
        d = max(features // REDUCTION, 32)
        self.convs = nn.ModuleList()
        for i in range(BRANCHES):
            conv = nn.Conv2d(features, features, 3, stride, 1 + i, 1 + i, GROUPS, bias=False)
            layers = nn.Sequential(conv, nn.BatchNorm2d(features), nn.ReLU(inplace=True))
            self.convs.append(layers)
        self.fc = nn.Linear(features, d)
        self.fcs = nn.ModuleList(nn.Linear(d, features) for _ in range(BRANCHES))
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x: Tensor) -> Tensor:
        feas = torch.cat([conv(x).unsqueeze_(dim=1) for conv in self.convs], dim=1)
        fea_u = torch.sum(feas, dim=1)
        fea_s = fea_u.mean(-1).mean(-1)
        fea_z = self.fc(fea_s)
        vectors = torch.cat([fc(fea_z).unsqueeze_(dim=1) for fc in self.fcs], dim=1)
        attention: Tensor = self.softmax(vectors).unsqueeze(-1).unsqueeze(-1)
        return (feas * attention).sum(dim=1)


class SKUnit(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        middle = outputs // 2
        self.feas = nn.Sequential(
            nn.Conv2d(inputs, middle, 1, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(inplace=True),
            SKConv(middle, stride),
            nn.BatchNorm2d(middle),
            nn.ReLU(inplace=True),
            nn.Conv2d(middle, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = shortcut(inputs, outputs, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.relu(self.feas(x) + self.shortcut(x))
        return y


def logsumexp_2d(tensor: Tensor) -> Tensor:
    flat = tensor.view(tensor.size(0), tensor.size(1), -1)
    s, _ = torch.max(flat, dim=2, keepdim=True)
    return s + (flat - s).exp().sum(dim=2, keepdim=True).log()


class ChannelGate(nn.Module):
    def __init__(self, channels: int, pool_types: tuple[str, ...]) -> None:
        super().__init__()
        hidden = channels // REDUCTION
        self.mlp = nn.Sequential(
            nn.Flatten(), nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, channels)
        )
        self.pool_types = pool_types

    def forward(self, x: Tensor) -> Tensor:
        size = (x.size(2), x.size(3))
        channel_att_sum: Tensor | None = None
        for pool_type in self.pool_types:
            if pool_type == "avg":
                pool = functional.avg_pool2d(x, size, stride=size)
            elif pool_type == "max":
                pool = functional.max_pool2d(x, size, stride=size)
            elif pool_type == "lp":
                pool = functional.lp_pool2d(x, 2, size, stride=size)
            else:
                pool = logsumexp_2d(x)
            raw: Tensor = self.mlp(pool)
            channel_att_sum = raw if channel_att_sum is None else channel_att_sum + raw
        assert channel_att_sum is not None
        scale = torch.sigmoid(channel_att_sum).unsqueeze(2).unsqueeze(3).expand_as(x)
        return x * scale


class SpatialGate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 1, 7, padding=3, bias=False), nn.BatchNorm2d(1)

    def forward(self, x: Tensor) -> Tensor:
        pooled = torch.cat((torch.max(x, 1)[0].unsqueeze(1), torch.mean(x, 1).unsqueeze(1)), dim=1)
        return x * torch.sigmoid(self.bn(self.conv(pooled)))


class ECA(nn.Module):
    def __init__(self, channels: int, gamma: int = 2, b: int = 1) -> None:
        super().__init__()
        t = int(abs((math.log(channels, 2) + b) / gamma))
        k = t if t % 2 else t + 1
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.conv = nn.Conv1d(1, 1, kernel_size=k, padding=(k - 1) // 2, bias=False)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.avg_pool(x)
        y = self.conv(y.squeeze(-1).transpose(-1, -2)).transpose(-1, -2).unsqueeze(-1)
        y = self.sigmoid(y)
        return x * y.expand_as(x)


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, planes: int, stride: int, attention: nn.Module) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.attention = attention
        self.downsample = shortcut(inputs, planes, stride)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu(self.bn1(self.conv1(x)))
        out = self.attention(self.bn2(self.conv2(out)))
        out += self.downsample(x)
        out = self.relu(out)
        return out


def cbam(channels: int, pool_types: tuple[str, ...]) -> nn.Sequential:
    return nn.Sequential(ChannelGate(channels, pool_types), SpatialGate())


def build() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        BasicBlock(64, 64, 1, cbam(64, ("avg", "max"))),
        BasicBlock(64, 64, 1, ECA(64)),
        SKUnit(64, 128, 2),
        SKUnit(128, 128, 1),
        BasicBlock(128, 128, 2, cbam(128, ("avg", "max", "lp", "lse"))),
        BasicBlock(128, 256, 1, ECA(256)),
        SKUnit(256, 256, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, CLASSES),
    )
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
        elif isinstance(module, nn.BatchNorm2d):
            norms.vary(module)
    return net.eval()
