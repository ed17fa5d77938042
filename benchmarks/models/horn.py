"""Vocos: a vocoder of ConvNeXt 1d blocks that ends in an inverse short-time Fourier transform."""

from __future__ import annotations

import torch
import torch.nn as nn

MELS = 100
DIM = 128
LAYERS = 4
N_FFT = 256
HOP = 64


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim: int, intermediate_dim: int, layer_scale_init_value: float) -> None:
        super().__init__()
        self.dwconv = nn.Conv1d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, intermediate_dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(intermediate_dim, dim)
        self.gamma = nn.Parameter(layer_scale_init_value * torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x
        x = self.dwconv(x)
        x = x.transpose(1, 2)
        x = self.norm(x)
        x = self.pwconv1(x)
        x = self.act(x)
        x = self.pwconv2(x)
        x = self.gamma * x
        x = x.transpose(1, 2)
        return residual + x


class VocosBackbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv1d(MELS, DIM, kernel_size=7, padding=3)
        self.norm = nn.LayerNorm(DIM, eps=1e-6)
        self.convnext = nn.ModuleList(
            [ConvNeXtBlock(DIM, 3 * DIM, 1 / LAYERS) for _ in range(LAYERS)]
        )
        self.final_layer_norm = nn.LayerNorm(DIM, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        x = self.norm(x.transpose(1, 2))
        x = x.transpose(1, 2)
        for conv_block in self.convnext:
            x = conv_block(x)
        y: torch.Tensor = self.final_layer_norm(x.transpose(1, 2))
        return y


class ISTFT(nn.Module):
    window: torch.Tensor

    def __init__(self, n_fft: int, hop_length: int, win_length: int) -> None:
        super().__init__()
        self.n_fft = n_fft
        self.hop_length = hop_length
        self.win_length = win_length
        self.register_buffer("window", torch.hann_window(win_length))

    def forward(self, spec: torch.Tensor) -> torch.Tensor:
        pad = (self.win_length - self.hop_length) // 2
        frames = spec.shape[2]
        ifft = torch.fft.irfft(spec, self.n_fft, dim=1, norm="backward")
        ifft = ifft * self.window[None, :, None]
        output_size = (frames - 1) * self.hop_length + self.win_length
        y = torch.nn.functional.fold(
            ifft,
            output_size=(1, output_size),
            kernel_size=(1, self.win_length),
            stride=(1, self.hop_length),
        )[:, 0, 0, pad:-pad]
        window_sq = self.window.square().expand(1, frames, -1).transpose(1, 2)
        window_envelope = torch.nn.functional.fold(
            window_sq,
            output_size=(1, output_size),
            kernel_size=(1, self.win_length),
            stride=(1, self.hop_length),
        ).squeeze()[pad:-pad]
        return y / window_envelope


class ISTFTHead(nn.Module):
    def __init__(self, dim: int, n_fft: int, hop_length: int) -> None:
        super().__init__()
        self.out = nn.Linear(dim, n_fft + 2)
        self.istft = ISTFT(n_fft, hop_length, n_fft)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.out(x).transpose(1, 2)
        mag, p = x.chunk(2, dim=1)
        mag = torch.exp(mag)
        mag = torch.clip(mag, max=1e2)
        x = torch.cos(p)
        y = torch.sin(p)
        audio: torch.Tensor = self.istft(mag * (x + 1j * y))
        return audio


class Vocos(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = VocosBackbone()
        self.head = ISTFTHead(DIM, N_FFT, HOP)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.backbone(features))
        return y


def build() -> nn.Module:
    torch.manual_seed(0)
    module = Vocos()
    with torch.no_grad():
        # Magnitudes about 10, so that the waveform is of order 1; some reach the clip.
        module.head.out.weight[: N_FFT // 2 + 1].mul_(2.0)
        module.head.out.weight[N_FFT // 2 + 1 :].mul_(3.0)
        module.head.out.bias[: N_FFT // 2 + 1].add_(2.0)
    return module.eval()
