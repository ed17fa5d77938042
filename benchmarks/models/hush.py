"""Silero VAD: voice activity by a convolutional STFT and an LSTM carried over chunks."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

FILTER = 256
HOP = 64
CHUNK = 512
HIDDEN = 64
LAYERS = 2


class STFT(nn.Module):
    forward_basis_buffer: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.cutoff = FILTER // 2 + 1
        time = torch.arange(FILTER, dtype=torch.float64)
        angle = 2 * math.pi * torch.outer(torch.arange(self.cutoff), time) / FILTER
        window = torch.hann_window(FILTER, dtype=torch.float64)
        basis = torch.cat([angle.cos(), -angle.sin()]) * window
        self.register_buffer("forward_basis_buffer", basis[:, None, :].float())

    def forward(self, input_data: torch.Tensor) -> torch.Tensor:
        padding = (FILTER - HOP) // 2
        input_data = functional.pad(input_data.unsqueeze(1), (padding, padding), mode="reflect")
        transform = functional.conv1d(input_data, self.forward_basis_buffer, stride=HOP)
        real_part = transform[:, : self.cutoff, :]
        imag_part = transform[:, self.cutoff :, :]
        return torch.sqrt(real_part**2 + imag_part**2)


def simple_pad(x: torch.Tensor, pad: int) -> torch.Tensor:
    left_pad = torch.flip(x[:, :, 1 : 1 + pad], [-1])
    right_pad = torch.flip(x[:, :, -1 - pad : -1], [-1])
    return torch.cat([left_pad, x, right_pad], 2)


class AdaptiveAudioNormalization(nn.Module):
    filter_: torch.Tensor

    def __init__(self, to: int = 3) -> None:
        super().__init__()
        self.pad = to
        taps = torch.exp(-(torch.arange(-to, to + 1).float() ** 2) / 8)
        self.register_buffer("filter_", (taps / taps.sum())[None, None])

    def forward(self, spect: torch.Tensor) -> torch.Tensor:
        spect = torch.log1p(spect * 1048576)
        mean = spect.mean(dim=1, keepdim=True)
        mean = simple_pad(mean, self.pad)
        mean = torch.conv1d(mean, self.filter_)
        mean_mean = mean.mean(dim=-1, keepdim=True)
        spect.add_(-mean_mean)
        return spect


class ConvBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.dw_conv = nn.Sequential(
            nn.Conv1d(in_channels, in_channels, 5, padding=2, groups=in_channels),
            nn.Identity(),
            nn.ReLU(inplace=True),
        )
        self.pw_conv = nn.Sequential(nn.Conv1d(in_channels, out_channels, 1), nn.Identity())
        self.proj: nn.Module = nn.Identity()
        if in_channels != out_channels:
            self.proj = nn.Conv1d(in_channels, out_channels, 1)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x
        x = self.dw_conv(x)
        x = self.pw_conv(x)
        residual = self.proj(residual)
        x += residual
        x = self.activation(x)
        return x


def downsample(channels: int) -> list[nn.Module]:
    return [nn.Conv1d(channels, channels, 1, stride=2), nn.BatchNorm1d(channels), nn.ReLU(True)]


class VAD(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.feature_extractor = STFT()
        self.adaptive_normalization = AdaptiveAudioNormalization()
        self.first_layer = nn.Sequential(ConvBlock(FILTER + 2, 16), nn.Dropout(0.1))
        self.encoder = nn.Sequential(
            *downsample(16),
            nn.Sequential(ConvBlock(16, 32), nn.Dropout(0.1)),
            *downsample(32),
            nn.Sequential(ConvBlock(32, 32), nn.Dropout(0.1)),
            nn.Sequential(ConvBlock(32, 64), nn.Dropout(0.1)),
        )
        self.lstm = nn.LSTM(64, HIDDEN, LAYERS, batch_first=True, dropout=0.1)
        self.decoder = nn.Sequential(nn.ReLU(), nn.Conv1d(HIDDEN, 1, 1), nn.Sigmoid())

    def chunk(
        self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = self.feature_extractor(x)
        norm = self.adaptive_normalization(x)
        x = self.encoder(self.first_layer(torch.cat([x, norm], 1)))
        x, (h, c) = self.lstm(x.permute(0, 2, 1), (h, c))
        x = self.decoder(x.permute(0, 2, 1))
        return torch.mean(torch.squeeze(x, 1), dim=1, keepdim=True), h, c

    def forward(
        self, audio: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        outs = []
        for i in range(0, audio.shape[1], CHUNK):
            out, h, c = self.chunk(audio[:, i : i + CHUNK], h, c)
            outs.append(out)
        return torch.cat(outs, dim=1), h, c


def build() -> nn.Module:
    torch.manual_seed(0)
    module = VAD()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d):
            assert part.running_mean is not None and part.running_var is not None
            part.running_mean.copy_(torch.randn_like(part.running_mean) * 0.1)
            part.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -0.1, 0.1)
        elif isinstance(part, nn.Conv1d):
            nn.init.xavier_normal_(part.weight, gain=1.0)
        elif isinstance(part, nn.LSTM):
            for weight in part.parameters():
                nn.init.normal_(weight, std=0.2)
    return module.eval()
