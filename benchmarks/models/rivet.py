"""Rivet: a convolutional Kolmogorov-Arnold network, wanted-splines on every edge."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = 10
GRID_SIZE = 5
SPLINE_ORDER = 3
GRID_RANGE = (-1.0, 1.0)
SCALE_NOISE = 2.0


class KANLinear(nn.Module):
    grid: Tensor

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.grid_size = GRID_SIZE
        self.spline_order = SPLINE_ORDER
        h = (GRID_RANGE[1] - GRID_RANGE[0]) / GRID_SIZE
        grid = torch.arange(-SPLINE_ORDER, GRID_SIZE + SPLINE_ORDER + 1) * h + GRID_RANGE[0]
        self.register_buffer("grid", grid.expand(in_features, -1).contiguous())
        self.base_activation = nn.SiLU()
        self.base_weight = nn.Parameter(torch.empty(out_features, in_features))
        self.spline_weight = nn.Parameter(
            torch.empty(out_features, in_features, GRID_SIZE + SPLINE_ORDER)
        )
        self.spline_scaler = nn.Parameter(torch.empty(out_features, in_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.base_weight, a=math.sqrt(5))
        with torch.no_grad():
            size = (self.grid_size + 1, self.in_features, self.out_features)
            noise = (torch.rand(*size) - 0.5) * SCALE_NOISE
            points = self.grid.T[self.spline_order : -self.spline_order]
            self.spline_weight.data.copy_(self.curve2coeff(points, noise))
        nn.init.kaiming_uniform_(self.spline_scaler, a=math.sqrt(5) / 3)

    def b_splines(self, x: Tensor) -> Tensor:
        assert x.dim() == 2 and x.size(1) == self.in_features
        grid = self.grid
        x = x.unsqueeze(-1)
        bases = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.spline_order + 1):
            bases = (
                (x - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)]) * bases[:, :, :-1]
            ) + ((grid[:, k + 1 :] - x) / (grid[:, k + 1 :] - grid[:, 1:(-k)]) * bases[:, :, 1:])
        return bases.contiguous()

    def curve2coeff(self, x: Tensor, y: Tensor) -> Tensor:
        at_points = self.b_splines(x).transpose(0, 1)
        wanted = y.transpose(0, 1)
        # fewer points than splines: the solution of least norm
        solution: Tensor = torch.linalg.lstsq(at_points, wanted, driver="gelsd").solution
        return solution.permute(2, 0, 1).contiguous()

    @property
    def scaled_spline_weight(self) -> Tensor:
        return self.spline_weight * self.spline_scaler.unsqueeze(-1)

    def forward(self, x: Tensor) -> Tensor:
        original_shape = x.shape
        x = x.reshape(-1, self.in_features)
        base_output = functional.linear(self.base_activation(x), self.base_weight)
        spline_output = functional.linear(
            self.b_splines(x).reshape(x.size(0), -1),
            self.scaled_spline_weight.view(self.out_features, -1),
        )
        output = base_output + spline_output
        return output.reshape(*original_shape[:-1], self.out_features)


class KANConv2d(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel: int, padding: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.padding = padding
        self.linear = KANLinear(in_channels * kernel * kernel, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        _, _, height, width = x.shape
        height = height + 2 * self.padding - self.kernel + 1
        width = width + 2 * self.padding - self.kernel + 1
        patches = functional.unfold(x, self.kernel, padding=self.padding)
        patches = patches.transpose(1, 2)
        out = self.linear(patches)
        return torch.unflatten(out.transpose(1, 2), 2, (height, width))


class ConvKAN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = KANConv2d(1, 8, 3, padding=1)
        self.conv2 = KANConv2d(8, 16, 3, padding=0)
        self.pool = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.layers = nn.Sequential(KANLinear(16 * 6 * 6, 64), KANLinear(64, CLASSES))

    def forward(self, image: Tensor) -> Tensor:
        x = self.pool(self.conv1(image))
        # back into the range of the next layer's grid
        x = torch.tanh(x)
        x = self.pool(self.conv2(x))
        x = self.flatten(x)
        x = self.layers(x)
        return functional.log_softmax(x, dim=-1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return ConvKAN().eval()
