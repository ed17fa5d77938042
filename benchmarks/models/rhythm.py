"""Rhythm: the Autoformer forecaster, auto-correlation by FFT with series decomposition."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 7
LABEL_LEN = 24
PRED_LEN = 36
D_MODEL = 64
HEADS = 8
D_FF = 128
MOVING_AVG = 25
FACTOR = 1


class MyLayernorm(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layernorm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        x_hat: Tensor = self.layernorm(x)
        return x_hat - torch.mean(x_hat, dim=1).unsqueeze(1).repeat(1, x.shape[1], 1)


class SeriesDecomp(nn.Module):
    def __init__(self, kernel_size: int) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.avg = nn.AvgPool1d(kernel_size=kernel_size, stride=1, padding=0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        front = x[:, 0:1, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        padded = torch.cat([front, x, end], dim=1)
        moving_mean = self.avg(padded.permute(0, 2, 1)).permute(0, 2, 1)
        return x - moving_mean, moving_mean


class AutoCorrelation(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query_projection = nn.Linear(d_model, d_model)
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.out_projection = nn.Linear(d_model, d_model)

    def time_delay_agg(self, values: Tensor, corr: Tensor) -> Tensor:
        batch, head, channel, length = values.shape
        init_index = torch.arange(length).unsqueeze(0).unsqueeze(0).unsqueeze(0)
        init_index = init_index.repeat(batch, head, channel, 1).to(values.device)
        top_k = int(FACTOR * math.log(length))
        mean_value = torch.mean(torch.mean(corr, dim=1), dim=1)
        weights, delay = torch.topk(mean_value, top_k, dim=-1)
        tmp_corr = torch.softmax(weights, dim=-1)
        tmp_values = values.repeat(1, 1, 1, 2)
        delays_agg = torch.zeros_like(values).float()
        for i in range(top_k):
            shift = delay[:, i].unsqueeze(1).unsqueeze(1).unsqueeze(1)
            tmp_delay = init_index + shift.repeat(1, head, channel, length)
            pattern = torch.gather(tmp_values, dim=-1, index=tmp_delay)
            weight = tmp_corr[:, i].unsqueeze(1).unsqueeze(1).unsqueeze(1)
            delays_agg = delays_agg + pattern * weight.repeat(1, head, channel, length)
        return delays_agg

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        rows, asked, _ = queries.shape
        _, known, _ = keys.shape
        heads_ = self.n_heads
        queries = self.query_projection(queries).view(rows, asked, heads_, -1)
        keys = self.key_projection(keys).view(rows, known, heads_, -1)
        values = self.value_projection(values).view(rows, known, heads_, -1)
        if asked > known:
            zeros = torch.zeros_like(queries[:, : (asked - known), :]).float()
            values = torch.cat([values, zeros], dim=1)
            keys = torch.cat([keys, zeros], dim=1)
        else:
            values = values[:, :asked, :, :]
            keys = keys[:, :asked, :, :]
        q_fft = torch.fft.rfft(queries.permute(0, 2, 3, 1).contiguous(), dim=-1)
        k_fft = torch.fft.rfft(keys.permute(0, 2, 3, 1).contiguous(), dim=-1)
        corr = torch.fft.irfft(q_fft * torch.conj(k_fft), n=asked, dim=-1)
        chosen = self.time_delay_agg(values.permute(0, 2, 3, 1).contiguous(), corr)
        out: Tensor = self.out_projection(
            chosen.permute(0, 3, 1, 2).contiguous().view(rows, asked, -1)
        )
        return out


def fixed_embedding(c_in: int, d_model: int) -> nn.Embedding:
    w = torch.zeros(c_in, d_model)
    position = torch.arange(0, c_in).float().unsqueeze(1)
    div_term = (torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model)).exp()
    w[:, 0::2] = torch.sin(position * div_term)
    w[:, 1::2] = torch.cos(position * div_term)
    emb = nn.Embedding(c_in, d_model)
    emb.weight = nn.Parameter(w, requires_grad=False)
    return emb


class DataEmbedding(nn.Module):
    def __init__(self, c_in: int, d_model: int) -> None:
        super().__init__()
        self.token = nn.Conv1d(c_in, d_model, 3, padding=1, padding_mode="circular", bias=False)
        nn.init.kaiming_normal_(self.token.weight, mode="fan_in", nonlinearity="leaky_relu")
        self.month, self.day, self.weekday, self.hour = (
            fixed_embedding(size, d_model) for size in (13, 32, 7, 24)
        )

    def forward(self, x: Tensor, mark: Tensor) -> Tensor:
        mark = mark.long()
        hour_x = self.hour(mark[:, :, 3]).detach()
        weekday_x = self.weekday(mark[:, :, 2]).detach()
        day_x = self.day(mark[:, :, 1]).detach()
        month_x = self.month(mark[:, :, 0]).detach()
        value: Tensor = self.token(x.permute(0, 2, 1)).transpose(1, 2)
        temporal: Tensor = hour_x + weekday_x + day_x + month_x
        return value + temporal


class Layer(nn.Module):
    def __init__(self, decoder: bool) -> None:
        super().__init__()
        self.attention = AutoCorrelation(D_MODEL, HEADS)
        self.cross = AutoCorrelation(D_MODEL, HEADS) if decoder else None
        self.conv1 = nn.Conv1d(D_MODEL, D_FF, kernel_size=1, bias=False)
        self.conv2 = nn.Conv1d(D_FF, D_MODEL, kernel_size=1, bias=False)
        self.decomp = SeriesDecomp(MOVING_AVG)
        self.projection = nn.Conv1d(
            D_MODEL, CHANNELS, 3, padding=1, padding_mode="circular", bias=False
        )

    def forward(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = x + self.attention(x, x, x)
        x, trend = self.decomp(x)
        if self.cross is not None:
            x = x + self.cross(x, memory, memory)
            x, trend2 = self.decomp(x)
            trend = trend + trend2
        y = functional.gelu(self.conv1(x.transpose(-1, 1)))
        y = self.conv2(y).transpose(-1, 1)
        x, trend3 = self.decomp(x + y)
        trend = self.projection((trend + trend3).permute(0, 2, 1)).transpose(1, 2)
        return x, trend


class Autoformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decomp = SeriesDecomp(MOVING_AVG)
        self.enc_embedding = DataEmbedding(CHANNELS, D_MODEL)
        self.dec_embedding = DataEmbedding(CHANNELS, D_MODEL)
        self.encoder = nn.ModuleList([Layer(False), Layer(False)])
        self.encoder_norm = MyLayernorm(D_MODEL)
        self.decoder = Layer(True)
        self.decoder_norm = MyLayernorm(D_MODEL)
        self.projection = nn.Linear(D_MODEL, CHANNELS, bias=True)

    def forward(self, x_enc: Tensor, x_mark_enc: Tensor, x_mark_dec: Tensor) -> Tensor:
        mean = torch.mean(x_enc, dim=1).unsqueeze(1).repeat(1, PRED_LEN, 1)
        zeros = torch.zeros([x_enc.shape[0], PRED_LEN, x_enc.shape[2]], device=x_enc.device)
        seasonal, trend = self.decomp(x_enc)
        trend = torch.cat([trend[:, -LABEL_LEN:, :], mean], dim=1)
        seasonal = torch.cat([seasonal[:, -LABEL_LEN:, :], zeros], dim=1)
        enc = self.enc_embedding(x_enc, x_mark_enc)
        for layer in self.encoder:
            enc, _ = layer(enc)
        enc = self.encoder_norm(enc)
        x, residual = self.decoder(self.dec_embedding(seasonal, x_mark_dec), enc)
        trend = trend + residual
        out: Tensor = trend + self.projection(self.decoder_norm(x))
        return out[:, -PRED_LEN:, :]


def build() -> nn.Module:
    torch.manual_seed(0)
    return Autoformer().eval()
