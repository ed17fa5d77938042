"""NASNet-A: cells of ten small branches each on the two cells before, all put side by side."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.models import norms

STEM = 32
FILTERS = 16
CLASSES = 100


def norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=0.001, momentum=0.1)


def separable(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, kernel, stride, kernel // 2, groups=inputs, bias=False),
        nn.Conv2d(inputs, outputs, 1, bias=False),
    )


class BranchSeparables(nn.Module):
    """With crop, padding above and to the left that is cut off again: TensorFlow's places."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, crop: bool = False
    ) -> None:
        super().__init__()
        self.crop = crop
        self.pad = nn.ZeroPad2d((1, 0, 1, 0))
        self.relu, self.relu1 = nn.ReLU(), nn.ReLU()
        self.separable_1 = separable(inputs, outputs, kernel, stride)
        self.bn_sep_1 = norm(outputs)
        self.separable_2 = separable(outputs, outputs, kernel, 1)
        self.bn_sep_2 = norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(x)
        if self.crop:
            x = self.separable_1(self.pad(x))[:, :, 1:, 1:].contiguous()
        else:
            x = self.separable_1(x)
        x = self.relu1(self.bn_sep_1(x))
        x = self.bn_sep_2(self.separable_2(x))
        return x


class PoolPad(nn.Module):
    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pad = nn.ZeroPad2d((1, 0, 1, 0))
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.pad(x))
        return x[:, :, 1:, 1:].contiguous()


def largest(crop: bool) -> nn.Module:
    pool = nn.MaxPool2d(3, stride=2, padding=1)
    return PoolPad(pool) if crop else pool


def average(stride: int) -> nn.Module:
    return nn.AvgPool2d(3, stride=stride, padding=1, count_include_pad=False)


def every_other(inputs: int, outputs: int) -> nn.Sequential:
    pool = nn.AvgPool2d(1, stride=2, count_include_pad=False)
    return nn.Sequential(pool, nn.Conv2d(inputs, outputs // 2, 1, bias=False))


class FactorizedReduction(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.path_1, self.path_2 = every_other(inputs, outputs), every_other(inputs, outputs)
        self.pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.final_path_bn = norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x_relu = self.relu(x)
        x_path1 = self.path_1(x_relu)
        x_path2 = self.path_2(self.pad(x_relu)[:, :, 1:, 1:])
        y: Tensor = self.final_path_bn(torch.cat([x_path1, x_path2], 1))
        return y


def squeeze(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.ReLU(), nn.Conv2d(inputs, outputs, 1, bias=False), norm(outputs))


class NormalCell(nn.Module):
    def __init__(self, prev: nn.Module, right: int, f: int) -> None:
        super().__init__()
        self.prev_1x1, self.conv_1x1 = prev, squeeze(right, f)
        self.left_0, self.right_0 = BranchSeparables(f, f, 5), BranchSeparables(f, f, 3)
        self.left_1, self.right_1 = BranchSeparables(f, f, 5), BranchSeparables(f, f, 3)
        self.left_2 = average(1)
        self.left_3, self.right_3 = average(1), average(1)
        self.left_4 = BranchSeparables(f, f, 3)

    def forward(self, x: Tensor, x_prev: Tensor) -> Tensor:
        left, right = self.prev_1x1(x_prev), self.conv_1x1(x)
        x0 = self.left_0(right) + self.right_0(left)
        x1 = self.left_1(left) + self.right_1(left)
        x2 = self.left_2(right) + left
        x3 = self.left_3(left) + self.right_3(left)
        x4 = self.left_4(right) + right
        return torch.cat([left, x0, x1, x2, x3, x4], 1)


class ReductionCell(nn.Module):
    def __init__(self, prev: nn.Module, left: int, right: int, f: int, crop: bool) -> None:
        super().__init__()
        self.prev_1x1, self.conv_1x1 = prev, squeeze(right, f)
        self.left_0 = BranchSeparables(f, f, 5, 2, crop)
        self.right_0 = BranchSeparables(left, f, 7, 2, crop)
        self.left_1, self.right_1 = largest(crop), BranchSeparables(left, f, 7, 2, crop)
        self.left_2 = PoolPad(average(2)) if crop else average(2)
        self.right_2 = BranchSeparables(left, f, 5, 2, crop)
        self.right_3 = average(1)
        self.left_4, self.right_4 = BranchSeparables(f, f, 3), largest(crop)

    def forward(self, x: Tensor, x_prev: Tensor) -> Tensor:
        left, right = self.prev_1x1(x_prev), self.conv_1x1(x)
        x0 = self.left_0(right) + self.right_0(left)
        x1 = self.left_1(right) + self.right_1(left)
        x2 = self.left_2(right) + self.right_2(left)
        x3 = self.right_3(x0) + x1
        x4 = self.left_4(x0) + self.right_4(right)
        return torch.cat([x1, x2, x3, x4], 1)


class NASNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        f = FILTERS
        self.conv0 = nn.Sequential(nn.Conv2d(3, STEM, 3, 2, bias=False), norm(STEM))
        self.cell_stem_0 = ReductionCell(nn.Identity(), STEM, STEM, f, False)
        self.cell_stem_1 = ReductionCell(FactorizedReduction(STEM, f), f, 4 * f, f, False)
        self.cell_0 = NormalCell(FactorizedReduction(4 * f, f), 4 * f, f)
        self.cell_1 = NormalCell(squeeze(4 * f, f), 6 * f, f)
        self.reduction_cell_0 = ReductionCell(squeeze(6 * f, 2 * f), 2 * f, 6 * f, 2 * f, True)
        self.cell_2 = NormalCell(FactorizedReduction(6 * f, 2 * f), 8 * f, 2 * f)
        self.cell_3 = NormalCell(squeeze(8 * f, 2 * f), 12 * f, 2 * f)
        self.relu = nn.ReLU()
        self.avg_pool = nn.AvgPool2d(6)
        self.dropout = nn.Dropout()
        self.last_linear = nn.Linear(12 * f, CLASSES)

    def forward(self, input: Tensor) -> Tensor:
        x_conv0 = self.conv0(input)
        x_stem_0 = self.cell_stem_0(x_conv0, x_conv0)
        x_stem_1 = self.cell_stem_1(x_stem_0, x_conv0)
        x_cell_0 = self.cell_0(x_stem_1, x_stem_0)
        x_cell_1 = self.cell_1(x_cell_0, x_stem_1)
        x_reduced = self.reduction_cell_0(x_cell_1, x_cell_0)
        x_cell_2 = self.cell_2(x_reduced, x_cell_1)
        x_cell_3 = self.cell_3(x_cell_2, x_reduced)
        x = self.avg_pool(self.relu(x_cell_3))
        x = x.view(x.size(0), -1)
        y: Tensor = self.last_linear(self.dropout(x))
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    net = NASNet()
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
        elif isinstance(module, nn.BatchNorm2d):
            norms.vary(module)
    return net.eval()
