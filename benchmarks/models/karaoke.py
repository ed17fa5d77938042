"""BSRNN: source separation by LSTMs that run over time and over the bands of a split spectrum."""

from __future__ import annotations

import torch
import torch.nn as nn

WIN = 256
STRIDE = 128
FEATURES = 32
LAYERS = 2
BANDS = (4,) * 8 + (8,) * 6 + (16,) * 2 + (17,)


class ResRNN(nn.Module):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.eps = torch.finfo(torch.float32).eps
        self.norm = nn.GroupNorm(1, input_size, self.eps)
        self.rnn = nn.LSTM(input_size, hidden_size, 1, batch_first=True, bidirectional=True)
        self.proj = nn.Linear(hidden_size * 2, input_size)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        rnn_output, _ = self.rnn(self.norm(input).transpose(1, 2).contiguous())
        rnn_output = self.proj(rnn_output.contiguous().view(-1, rnn_output.shape[2]))
        rnn_output = rnn_output.view(input.shape[0], input.shape[2], input.shape[1])
        input = input + rnn_output.transpose(1, 2).contiguous()
        return input


class BSNet(nn.Module):
    def __init__(self, in_channel: int, nband: int) -> None:
        super().__init__()
        self.nband = nband
        self.feature_dim = in_channel // nband
        self.band_rnn = ResRNN(self.feature_dim, self.feature_dim * 2)
        self.band_comm = ResRNN(self.feature_dim, self.feature_dim * 2)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        batch, channels, frames = input.shape
        band_output = self.band_rnn(input.view(batch * self.nband, self.feature_dim, -1))
        band_output = band_output.view(batch, self.nband, -1, frames)
        band_output = band_output.permute(0, 3, 2, 1).contiguous()
        band_output = band_output.view(batch * frames, -1, self.nband)
        output = self.band_comm(band_output).view(batch, frames, -1, self.nband)
        output = output.permute(0, 3, 2, 1).contiguous()
        input = output.view(batch, channels, frames)
        return input


class BSRNN(nn.Module):
    window: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.eps = torch.finfo(torch.float32).eps
        self.nband = len(BANDS)
        self.register_buffer("window", torch.hann_window(WIN))
        self.BN, self.mask = nn.ModuleList(), nn.ModuleList()
        for width in BANDS:
            self.BN.append(
                nn.Sequential(
                    nn.GroupNorm(1, width * 2 + 1, self.eps),
                    nn.Conv1d(width * 2 + 1, FEATURES, 1),
                )
            )
            self.mask.append(
                nn.Sequential(
                    nn.GroupNorm(1, FEATURES, self.eps),
                    nn.Conv1d(FEATURES, FEATURES * 4, 1),
                    nn.Tanh(),
                    nn.Conv1d(FEATURES * 4, FEATURES * 4, 1),
                    nn.Tanh(),
                    nn.Conv1d(FEATURES * 4, width * 4, 1),
                )
            )
        self.separator = nn.Sequential(
            *[BSNet(self.nband * FEATURES, self.nband) for _ in range(LAYERS)]
        )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        batch_size, nsample = input.shape
        spec = torch.stft(
            input, n_fft=WIN, hop_length=STRIDE, window=self.window, return_complex=True
        )
        spec_ri = torch.stack([spec.real, spec.imag], 1)
        subband_spec, subband_feature, start = [], [], 0
        for i, width in enumerate(BANDS):
            this_spec = spec[:, start : start + width]
            this_ri = spec_ri[:, :, start : start + width].contiguous()
            power = (this_spec.abs().pow(2).sum(1) + self.eps).sqrt().unsqueeze(1)
            this_ri = this_ri.view(batch_size, width * 2, -1) / power
            feature = torch.cat([this_ri, torch.log(power)], 1)
            subband_feature.append(self.BN[i](feature))
            subband_spec.append(this_spec)
            start += width
        features = torch.stack(subband_feature, 1)
        sep_output = self.separator(features.view(batch_size, self.nband * FEATURES, -1))
        sep_output = sep_output.view(batch_size, self.nband, FEATURES, -1)

        sep_subband_spec = []
        for i, width in enumerate(BANDS):
            this_output = self.mask[i](sep_output[:, i])
            this_output = this_output.view(batch_size, 2, 2, width, -1)
            this_mask = this_output[:, 0] * torch.sigmoid(this_output[:, 1])
            mask_real, mask_imag = this_mask[:, 0], this_mask[:, 1]
            this_spec = subband_spec[i]
            real = this_spec.real * mask_real - this_spec.imag * mask_imag
            imag = this_spec.real * mask_imag + this_spec.imag * mask_real
            sep_subband_spec.append(torch.complex(real, imag))
        est_spec = torch.cat(sep_subband_spec, 1)
        return torch.istft(
            est_spec, n_fft=WIN, hop_length=STRIDE, window=self.window, length=nsample
        )


def build() -> nn.Module:
    torch.manual_seed(0)
    module = BSRNN()
    with torch.no_grad():
        # Masks of order 1, as after training.
        for head in module.mask:
            assert isinstance(head, nn.Sequential) and isinstance(head[-1], nn.Conv1d)
            head[-1].weight.mul_(6.0)
    return module.eval()
