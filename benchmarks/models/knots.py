"""Knots: N-HiTS, pooled and interpolated forecasting stacks, with N-BEATS's interpretable ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

INPUT_SIZE = 168
HORIZON = 48
STATIC = 5
FUTURE = 3
HIDDEN = 512
# pooling kernel, frequency downsampling, interpolation
STACKS = ((8, 24, "cubic"), (4, 12, "linear"), (1, 2, "nearest"))


class IdentityBasis(nn.Module):
    def __init__(self, backcast_size: int, forecast_size: int, interpolation_mode: str) -> None:
        super().__init__()
        assert interpolation_mode in ("linear", "nearest", "cubic")
        self.forecast_size = forecast_size
        self.backcast_size = backcast_size
        self.interpolation_mode = interpolation_mode

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        backcast = theta[:, : self.backcast_size]
        knots = theta[:, self.backcast_size :]
        knots = knots.reshape(knots.shape[0], 1, -1)
        if self.interpolation_mode in ("nearest", "linear"):
            forecast = functional.interpolate(
                knots, size=self.forecast_size, mode=self.interpolation_mode
            )
        else:
            # an integer size makes a square of it, of which every row is the same
            square = functional.interpolate(
                knots[:, None, :, :], size=self.forecast_size, mode="bicubic"
            )
            forecast = square[:, 0, 0:1, :]
        return backcast, forecast.permute(0, 2, 1).squeeze(-1)


class TrendBasis(nn.Module):
    backcast_basis: Tensor
    forecast_basis: Tensor

    def __init__(self, degree: int, backcast_size: int, forecast_size: int) -> None:
        super().__init__()
        self.degree = degree + 1
        for name, size in (("backcast_basis", backcast_size), ("forecast_basis", forecast_size)):
            t = torch.arange(size, dtype=torch.float32) / size
            self.register_buffer(name, torch.stack([t**i for i in range(self.degree)]))

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        cut = self.degree
        backcast = torch.einsum("bp,pt->bt", theta[:, cut:], self.backcast_basis)
        forecast = torch.einsum("bp,pt->bt", theta[:, :cut], self.forecast_basis)
        return backcast, forecast


class SeasonalityBasis(nn.Module):
    def __init__(self, harmonics: int, backcast_size: int, forecast_size: int) -> None:
        super().__init__()
        self.harmonics = harmonics
        self.backcast_size = backcast_size
        self.forecast_size = forecast_size
        self.num_terms = 2 * (harmonics - 1)

    def fourier(self, size: int, device: torch.device) -> Tensor:
        grid = torch.arange(size, device=device) / size
        frequency = torch.arange(1, self.harmonics, device=device).float()
        angle = 2 * math.pi * torch.outer(frequency, grid)
        return torch.cat([torch.cos(angle), torch.sin(angle)], dim=0)

    def forward(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        forecast_theta, backcast_theta = theta.chunk(2, dim=-1)
        backcast = backcast_theta.mm(self.fourier(self.backcast_size, theta.device))
        forecast = forecast_theta.mm(self.fourier(self.forecast_size, theta.device))
        return backcast, forecast


class Block(nn.Module):
    def __init__(self, n_theta: int, pool: int, basis: nn.Module) -> None:
        super().__init__()
        n_pool = math.ceil(INPUT_SIZE / pool)
        self.pooling_layer = nn.MaxPool1d(kernel_size=pool, stride=pool, ceil_mode=True)
        hist_and_future = math.ceil((INPUT_SIZE + HORIZON) / pool)
        n_in = n_pool + FUTURE * hist_and_future + STATIC
        layers: list[nn.Module] = []
        for size in (n_in, HIDDEN):
            layers.append(nn.Linear(size, HIDDEN))
            layers.append(nn.ReLU())
        layers.append(nn.Linear(HIDDEN, n_theta))
        self.layers = nn.Sequential(*layers)
        self.basis = basis

    def forward(
        self, insample_y: Tensor, futr_exog: Tensor, stat_exog: Tensor
    ) -> tuple[Tensor, Tensor]:
        insample_y = insample_y.unsqueeze(1)
        insample_y = self.pooling_layer(insample_y)
        insample_y = insample_y.squeeze(1)
        batch_size = insample_y.shape[0]
        futr_exog = self.pooling_layer(futr_exog)
        insample_y = torch.cat((insample_y, futr_exog.reshape(batch_size, -1)), dim=1)
        insample_y = torch.cat((insample_y, stat_exog.reshape(batch_size, -1)), dim=1)
        theta = self.layers(insample_y)
        backcast, forecast = self.basis(theta)
        return backcast, forecast


class NHITS(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = []
        for pool, down, mode in STACKS:
            n_theta = INPUT_SIZE + max(HORIZON // down, 1)
            blocks.append(Block(n_theta, pool, IdentityBasis(INPUT_SIZE, HORIZON, mode)))
        trend = TrendBasis(2, INPUT_SIZE, HORIZON)
        blocks.append(Block(2 * trend.degree, 1, trend))
        seasonality = SeasonalityBasis(HORIZON // 2, INPUT_SIZE, HORIZON)
        blocks.append(Block(2 * seasonality.num_terms, 1, seasonality))
        self.blocks = nn.ModuleList(blocks)

    def forward(
        self, insample_y: Tensor, insample_mask: Tensor, futr_exog: Tensor, stat_exog: Tensor
    ) -> tuple[Tensor, Tensor]:
        futr_exog = futr_exog.permute(0, 2, 1)
        residuals = insample_y.flip(dims=(-1,))
        mask = insample_mask.flip(dims=(-1,))
        forecast = insample_y[:, -1:]
        block_forecasts = [forecast.repeat(1, HORIZON)]
        for block in self.blocks:
            backcast, block_forecast = block(residuals, futr_exog, stat_exog)
            residuals = (residuals - backcast) * mask
            forecast = forecast + block_forecast
            block_forecasts.append(block_forecast)
        components = torch.stack(block_forecasts)
        components = components.permute(1, 0, 2)
        return forecast, components


def build() -> nn.Module:
    torch.manual_seed(0)
    model = NHITS()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
    return model.eval()
