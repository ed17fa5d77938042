"""DCCRN: speech enhancement by complex convolutions and a complex LSTM that mask a spectrum."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

KERNEL_NUM = (2, 16, 32, 64, 128, 128)
KERNEL = 5
FREQUENCIES = 128
RNN_UNITS = 128
EPS = 1e-8


def complex_cat(inputs: list[Tensor], axis: int) -> Tensor:
    real, imag = zip(*(torch.chunk(data, 2, axis) for data in inputs), strict=True)
    return torch.cat([torch.cat(real, axis), torch.cat(imag, axis)], axis)


class ComplexConv2d(nn.Module):
    causal_pad = 1

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.real_conv = self.part(in_channels // 2, out_channels // 2)
        self.imag_conv = self.part(in_channels // 2, out_channels // 2)

    def part(self, in_channels: int, out_channels: int) -> nn.Module:
        return nn.Conv2d(in_channels, out_channels, (KERNEL, 2), (2, 1), (2, 0))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.causal_pad:
            inputs = functional.pad(inputs, [self.causal_pad, 0, 0, 0])
        real, imag = torch.chunk(inputs, 2, 1)
        real2real = self.real_conv(real)
        imag2imag = self.imag_conv(imag)
        real2imag = self.imag_conv(real)
        imag2real = self.real_conv(imag)
        return torch.cat([real2real - imag2imag, real2imag + imag2real], 1)


class ComplexConvTranspose2d(ComplexConv2d):
    causal_pad = 0

    def part(self, in_channels: int, out_channels: int) -> nn.Module:
        return nn.ConvTranspose2d(in_channels, out_channels, (KERNEL, 2), (2, 1), (2, 0), (1, 0))


class ComplexBatchNorm(nn.Module):
    def __init__(self, num_features: int) -> None:
        super().__init__()
        n = num_features // 2
        self.Wrr = nn.Parameter(torch.empty(n).uniform_(0.7, 1.3))
        self.Wri = nn.Parameter(torch.empty(n).uniform_(-0.9, 0.9))
        self.Wii = nn.Parameter(torch.empty(n).uniform_(0.7, 1.3))
        self.Br = nn.Parameter(torch.randn(n) * 0.1)
        self.Bi = nn.Parameter(torch.randn(n) * 0.1)
        self.RMr = nn.Buffer(torch.randn(n) * 0.1)
        self.RMi = nn.Buffer(torch.randn(n) * 0.1)
        self.RVrr = nn.Buffer(torch.empty(n).uniform_(0.5, 1.5))
        self.RVri = nn.Buffer(torch.empty(n).uniform_(-0.3, 0.3))
        self.RVii = nn.Buffer(torch.empty(n).uniform_(0.5, 1.5))

    def forward(self, inputs: Tensor) -> Tensor:
        xr, xi = torch.chunk(inputs, 2, 1)
        vdim = [1] * xr.dim()
        vdim[1] = xr.size(1)
        xr = xr - self.RMr.view(vdim)
        xi = xi - self.RMi.view(vdim)
        vrr, vri, vii = self.RVrr.view(vdim), self.RVri.view(vdim), self.RVii.view(vdim)
        tau = vrr + vii
        delta = torch.addcmul(vrr * vii, vri, vri, value=-1)
        s = delta.sqrt()
        t = (tau + 2 * s).sqrt()
        rst = (s * t).reciprocal()
        urr, uii, uri = (s + vii) * rst, (s + vrr) * rst, (-vri) * rst
        wrr, wri, wii = self.Wrr.view(vdim), self.Wri.view(vdim), self.Wii.view(vdim)
        zrr = (wrr * urr) + (wri * uri)
        zri = (wrr * uri) + (wri * uii)
        zir = (wri * urr) + (wii * uri)
        zii = (wri * uri) + (wii * uii)
        yr = (zrr * xr) + (zri * xi) + self.Br.view(vdim)
        yi = (zir * xr) + (zii * xi) + self.Bi.view(vdim)
        return torch.cat([yr, yi], 1)


class NavieComplexLSTM(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, projection_dim: int | None) -> None:
        super().__init__()
        self.real_lstm = nn.LSTM(input_size // 2, hidden_size // 2)
        self.imag_lstm = nn.LSTM(input_size // 2, hidden_size // 2)
        self.r_trans: nn.Module | None = None
        self.i_trans: nn.Module | None = None
        if projection_dim is not None:
            self.r_trans = nn.Linear(hidden_size // 2, projection_dim // 2)
            self.i_trans = nn.Linear(hidden_size // 2, projection_dim // 2)

    def forward(self, inputs: list[Tensor]) -> list[Tensor]:
        real, imag = inputs
        real_out = self.real_lstm(real)[0] - self.imag_lstm(imag)[0]
        imag_out = self.imag_lstm(real)[0] + self.real_lstm(imag)[0]
        if self.r_trans is not None and self.i_trans is not None:
            real_out = self.r_trans(real_out)
            imag_out = self.i_trans(imag_out)
        return [real_out, imag_out]


class DCCRN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        for a, b in pairwise(KERNEL_NUM):
            self.encoder.append(nn.Sequential(ComplexConv2d(a, b), ComplexBatchNorm(b), nn.PReLU()))
        for a, b in pairwise(KERNEL_NUM[::-1]):
            layer = nn.Sequential(ComplexConvTranspose2d(2 * a, b))
            if b > 2:
                layer.extend([ComplexBatchNorm(b), nn.PReLU()])
            self.decoder.append(layer)
        size = FREQUENCIES // 2 ** (len(KERNEL_NUM) - 1) * KERNEL_NUM[-1]
        self.enhance = nn.Sequential(
            NavieComplexLSTM(size, RNN_UNITS, None), NavieComplexLSTM(RNN_UNITS, RNN_UNITS, size)
        )

    def forward(self, real: Tensor, imag: Tensor) -> tuple[Tensor, Tensor]:
        spec_mags = torch.sqrt(real**2 + imag**2 + EPS)
        spec_phase = torch.atan2(imag, real)
        out = torch.stack([real, imag], 1)[:, :, 1:]
        encoder_out = []
        for layer in self.encoder:
            out = layer(out)
            encoder_out.append(out)
        batch_size, channels, dims, lengths = out.size()
        out = out.permute(3, 0, 1, 2)
        shape = [lengths, batch_size, channels // 2 * dims]
        r_in = torch.reshape(out[:, :, : channels // 2], shape)
        i_in = torch.reshape(out[:, :, channels // 2 :], shape)
        r_in, i_in = self.enhance([r_in, i_in])
        r_in = torch.reshape(r_in, [lengths, batch_size, channels // 2, dims])
        i_in = torch.reshape(i_in, [lengths, batch_size, channels // 2, dims])
        out = torch.cat([r_in, i_in], 2).permute(1, 2, 3, 0)
        for idx in range(len(self.decoder)):
            out = complex_cat([out, encoder_out[-1 - idx]], 1)
            out = self.decoder[idx](out)
            out = out[..., 1:]
        mask_real = functional.pad(out[:, 0], [0, 0, 1, 0])
        mask_imag = functional.pad(out[:, 1], [0, 0, 1, 0])
        mask_mags = (mask_real**2 + mask_imag**2) ** 0.5
        real_phase = mask_real / (mask_mags + EPS)
        imag_phase = mask_imag / (mask_mags + EPS)
        mask_phase = torch.atan2(imag_phase, real_phase)
        est_mags = torch.tanh(mask_mags) * spec_mags
        est_phase = spec_phase + mask_phase
        return est_mags * torch.cos(est_phase), est_mags * torch.sin(est_phase)


def build() -> nn.Module:
    torch.manual_seed(0)
    module = DCCRN()
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.xavier_normal_(part.weight)
    return module.eval()
