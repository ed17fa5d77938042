"""Period: a TimesNet forecaster, 2-D inception convolutions over known periods, with RevIN."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 7
SEQ_LEN = 48
PRED_LEN = 24
D_MODEL = 16
D_FF = 32
NUM_KERNELS = 6
PERIODS = (24, 12, 7)


class RevIN(nn.Module):
    mean: Tensor
    stdev: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.affine = affine
        if self.affine:
            self.affine_weight = nn.Parameter(1 + 0.1 * torch.randn(num_features))
            self.affine_bias = nn.Parameter(0.1 * torch.randn(num_features))

    def forward(self, x: Tensor, mode: str) -> Tensor:
        if mode == "norm":
            self._get_statistics(x)
            x = self._normalize(x)
        elif mode == "denorm":
            x = self._denormalize(x)
        else:
            raise NotImplementedError
        return x

    def _get_statistics(self, x: Tensor) -> None:
        dim2reduce = tuple(range(1, x.ndim - 1))
        self.mean = torch.mean(x, dim=dim2reduce, keepdim=True).detach()
        self.stdev = torch.sqrt(
            torch.var(x, dim=dim2reduce, keepdim=True, unbiased=False) + self.eps
        ).detach()

    def _normalize(self, x: Tensor) -> Tensor:
        x = x - self.mean
        x = x / self.stdev
        if self.affine:
            x = x * self.affine_weight
            x = x + self.affine_bias
        return x

    def _denormalize(self, x: Tensor) -> Tensor:
        if self.affine:
            x = x - self.affine_bias
            x = x / (self.affine_weight + self.eps * self.eps)
        x = x * self.stdev
        x = x + self.mean
        return x


class InceptionBlockV1(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, num_kernels: int) -> None:
        super().__init__()
        self.num_kernels = num_kernels
        kernels = []
        for i in range(self.num_kernels):
            kernels.append(nn.Conv2d(in_channels, out_channels, kernel_size=2 * i + 1, padding=i))
        self.kernels = nn.ModuleList(kernels)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        res_list = []
        for i in range(self.num_kernels):
            res_list.append(self.kernels[i](x))
        return torch.stack(res_list, dim=-1).mean(-1)


class TimesBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            InceptionBlockV1(D_MODEL, D_FF, NUM_KERNELS),
            nn.GELU(),
            InceptionBlockV1(D_FF, D_MODEL, NUM_KERNELS),
        )

    def forward(self, x: Tensor) -> Tensor:
        rows, steps, series = x.size()
        xf = torch.fft.rfft(x, dim=1)
        top_list = [steps // period for period in PERIODS]
        period_weight = abs(xf).mean(-1)[:, top_list]
        res = []
        for period in PERIODS:
            if steps % period != 0:
                length = ((steps // period) + 1) * period
                padding = torch.zeros([x.shape[0], (length - steps), x.shape[2]]).to(x.device)
                out = torch.cat([x, padding], dim=1)
            else:
                length = steps
                out = x
            out = (
                out.reshape(rows, length // period, period, series).permute(0, 3, 1, 2).contiguous()
            )
            out = self.conv(out)
            out = out.permute(0, 2, 3, 1).reshape(rows, -1, series)
            res.append(out[:, :steps, :])
        stacked = torch.stack(res, dim=-1)
        period_weight = functional.softmax(period_weight, dim=1)
        period_weight = period_weight.unsqueeze(1).unsqueeze(1).repeat(1, steps, series, 1)
        return torch.sum(stacked * period_weight, -1) + x


class TimesNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.revin = RevIN(CHANNELS)
        self.token = nn.Conv1d(CHANNELS, D_MODEL, 3, padding=1, padding_mode="circular", bias=False)
        self.position = nn.Parameter(0.1 * torch.randn(1, SEQ_LEN, D_MODEL))
        self.temporal = nn.Linear(4, D_MODEL, bias=False)
        self.predict_linear = nn.Linear(SEQ_LEN, PRED_LEN + SEQ_LEN)
        self.model = nn.ModuleList([TimesBlock() for _ in range(2)])
        self.layer_norm = nn.LayerNorm(D_MODEL)
        self.projection = nn.Linear(D_MODEL, CHANNELS, bias=True)

    def forward(self, x_enc: Tensor, x_mark_enc: Tensor) -> Tensor:
        x = self.revin(x_enc, "norm")
        value = self.token(x.permute(0, 2, 1)).transpose(1, 2)
        enc_out = value + self.temporal(x_mark_enc) + self.position
        enc_out = self.predict_linear(enc_out.permute(0, 2, 1)).permute(0, 2, 1)
        for block in self.model:
            enc_out = self.layer_norm(block(enc_out))
        dec_out: Tensor = self.revin(self.projection(enc_out), "denorm")
        return dec_out[:, -PRED_LEN:, :]


def build() -> nn.Module:
    torch.manual_seed(0)
    return TimesNet().eval()
