"""CondConv, dynamic convolution: kernels mixed for each picture, one convolution by groups."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.models import norms

EXPERTS = 4
CLASSES = 100
# Input and output channels, kernel, stride, expansion.
MOBILE = ((16, 24, 3, 2, 4), (24, 24, 3, 1, 4), (24, 40, 5, 2, 4))
DYNAMIC = ((40, 80, 2), (80, 80, 1))


class CondConv2d(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, groups: int) -> None:
        super().__init__()
        self.out_channels, self.stride, self.groups = outputs, stride, groups
        self.padding = (stride - 1 + kernel - 1) // 2
        self.weight_shape = (outputs, inputs // groups, kernel, kernel)
        fan = inputs // groups * kernel * kernel
        numel = outputs * fan
        self.weight = nn.Parameter(torch.randn(EXPERTS, numel) / fan**0.5)

    def forward(self, x: Tensor, routing_weights: Tensor) -> Tensor:
        b, c, h, w = x.shape
        weight = torch.matmul(routing_weights, self.weight)
        weight = weight.view((b * self.out_channels, *self.weight_shape[1:]))
        # One convolution for the whole batch: each picture is a group (or its own groups).
        x = x.reshape(1, b * c, h, w)
        out = functional.conv2d(
            x, weight, None, self.stride, self.padding, 1, groups=self.groups * b
        )
        out = out.permute([1, 0, 2, 3]).view(b, self.out_channels, out.shape[-2], out.shape[-1])
        return out


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.conv_reduce = nn.Conv2d(channels, reduced, 1)
        self.act1 = nn.SiLU(inplace=True)
        self.conv_expand = nn.Conv2d(reduced, channels, 1)
        self.gate = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        x_se = x.mean((2, 3), keepdim=True)
        x_se = self.conv_expand(self.act1(self.conv_reduce(x_se)))
        y: Tensor = x * self.gate(x_se)
        return y


class CondConvResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, ratio: int) -> None:
        super().__init__()
        mid = inputs * ratio
        self.has_skip = inputs == outputs and stride == 1
        self.routing_fn = nn.Linear(inputs, EXPERTS)
        self.conv_pw = CondConv2d(inputs, mid, 1, 1, 1)
        self.bn1, self.act1 = nn.BatchNorm2d(mid), nn.SiLU(inplace=True)
        self.conv_dw = CondConv2d(mid, mid, kernel, stride, mid)
        self.bn2, self.act2 = nn.BatchNorm2d(mid), nn.SiLU(inplace=True)
        self.se = SqueezeExcite(mid, inputs // 4)
        self.conv_pwl = CondConv2d(mid, outputs, 1, 1, 1)
        self.bn3 = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        pooled_inputs = functional.adaptive_avg_pool2d(x, 1).flatten(1)
        routing_weights = torch.sigmoid(self.routing_fn(pooled_inputs))
        x = self.act1(self.bn1(self.conv_pw(x, routing_weights)))
        x = self.act2(self.bn2(self.conv_dw(x, routing_weights)))
        x = self.se(x)
        x = self.bn3(self.conv_pwl(x, routing_weights))
        if self.has_skip:
            x = x + shortcut
        return x


class Attention2d(nn.Module):
    def __init__(self, inputs: int, ratio: float, k: int, temperature: int) -> None:
        super().__init__()
        hidden = int(inputs * ratio) + 1
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(inputs, hidden, 1, bias=False)
        self.fc2 = nn.Conv2d(hidden, k, 1, bias=True)
        self.temperature = temperature

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(x)
        x = self.fc1(x)
        x = functional.relu(x)
        x = self.fc2(x).view(x.size(0), -1)
        return functional.softmax(x / self.temperature, 1)


class DynamicConv2d(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.in_planes, self.out_planes, self.kernel_size = inputs, outputs, kernel
        self.stride, self.padding = stride, padding
        self.attention = Attention2d(inputs, 0.25, EXPERTS, 1)
        weight = torch.randn(EXPERTS, outputs, inputs, kernel, kernel)
        self.weight = nn.Parameter(weight * 2 / (inputs * kernel * kernel) ** 0.5)
        self.bias = nn.Parameter(torch.randn(EXPERTS, outputs) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        softmax_attention = self.attention(x)
        batch_size, _, height, width = x.size()
        x = x.view(1, -1, height, width)
        weight = self.weight.view(EXPERTS, -1)
        aggregate_weight = torch.mm(softmax_attention, weight).view(
            -1, self.in_planes, self.kernel_size, self.kernel_size
        )
        aggregate_bias = torch.mm(softmax_attention, self.bias).view(-1)
        output = functional.conv2d(
            x, aggregate_weight, aggregate_bias, self.stride, self.padding, groups=batch_size
        )
        return output.view(batch_size, self.out_planes, output.size(-2), output.size(-1))


class DynamicBlock(nn.Module):
    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = DynamicConv2d(inputs, planes, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = DynamicConv2d(planes, planes, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != planes:
            conv = DynamicConv2d(inputs, planes, 1, stride, 0)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(planes))

    def forward(self, x: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        out = functional.relu(out)
        return out


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU(inplace=True)]
        mobile = [CondConvResidual(*args) for args in MOBILE]
        dynamic = [DynamicBlock(*args) for args in DYNAMIC]
        self.blocks = nn.Sequential(*stem, *mobile, *dynamic)
        self.classifier = nn.Linear(DYNAMIC[-1][1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.adaptive_avg_pool2d(self.blocks(x), 1)
        y: Tensor = self.classifier(x.view(x.size(0), -1))
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    net = Network()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0.0, 1.0)
        elif isinstance(module, nn.BatchNorm2d):
            norms.vary(module)
    return net.eval()
