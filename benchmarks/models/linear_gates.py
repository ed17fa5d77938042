"""Packed texts, as Griffin (RecurrentGemma): gated linear recurrences, a window of attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

VOCABULARY = 512
WIDTH = 320
HEADS = 10
HEAD_DIM = WIDTH // HEADS
EXPANDED = 3 * WIDTH
WINDOW = 16
TAPS = 4
PATTERN = ("recurrent", "recurrent", "attention")
MIN_LOGITS = -2.3819763e38


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        var = torch.mean(torch.square(x), dim=-1, keepdim=True)
        normed_x = x * torch.rsqrt(var + 1e-6)
        return normed_x * (self.scale.reshape([1] * (x.ndim - 1) + [-1]) + 1)


class BlockDiagonalLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(HEADS, HEAD_DIM, HEAD_DIM) / math.sqrt(HEAD_DIM))
        self.b = nn.Parameter(torch.zeros(HEADS, HEAD_DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = x.reshape(*x.shape[:-1], HEADS, HEAD_DIM)
        y = torch.einsum("... h i, h i j -> ... h j", x, self.w) + self.b
        return y.reshape(*y.shape[:-2], WIDTH)


def rnn_scan(x: Tensor, a: Tensor, reset: Tensor) -> Tensor:
    """y[t] = a[t] * y[t - 1] + x[t], from nothing where reset."""
    a = a * ~reset[..., None]
    h_t = torch.zeros_like(x[:, 0])
    y = torch.zeros_like(x)
    for t in range(x.shape[1]):
        h_t = a[:, t].type_as(h_t) * h_t + x[:, t].type_as(h_t)
        y[:, t] = h_t.type_as(y)
    return y


class RGLRU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # Such that a ** 8 starts between 0.9 and 0.999.
        log_a = 0.5 * torch.log(torch.empty(WIDTH).uniform_(0.9**2, 0.999**2))
        self.a_param = nn.Parameter(torch.log(torch.exp(-log_a) - 1.0))
        self.input_gate = BlockDiagonalLinear()
        self.a_gate = BlockDiagonalLinear()

    def forward(self, x: Tensor, segment_pos: Tensor) -> Tensor:
        reset = segment_pos == 0
        gate_x = torch.sigmoid(self.input_gate(x))
        gate_a = torch.sigmoid(self.a_gate(x))
        log_a = -8.0 * gate_a * nn.functional.softplus(self.a_param)
        a, a_square = torch.exp(log_a), torch.exp(2 * log_a)
        gated_x = x * gate_x
        multiplier = torch.sqrt(torch.clamp(1 - a_square, min=1e-6))
        multiplier = reset[..., None] + ~reset[..., None] * multiplier
        normalized_x = gated_x * multiplier.type(x.dtype)
        return rnn_scan(normalized_x, a, reset)


class CausalConv1D(nn.Module):
    """A sum of shifted inputs; taps that reach into another text are taken out."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(TAPS, WIDTH) * math.sqrt(1 / TAPS))
        self.b = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor, segment_pos: Tensor) -> Tensor:
        output = torch.zeros_like(x)
        length = x.shape[1]
        document_mask = torch.ones_like(segment_pos, dtype=torch.bool)
        for shift in range(TAPS):
            if shift > 0:
                starts = nn.functional.pad(segment_pos[:, : length - shift + 1], (shift - 1, 0))
                document_mask = document_mask & (starts != 0)
            shifted = nn.functional.pad(x[:, : length - shift], (0, 0, shift, 0))
            output += (shifted * document_mask[..., None]) * self.w[TAPS - shift - 1]
        return output + self.b


class RecurrentBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_y, self.linear_x, self.linear_out = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.conv_1d = CausalConv1D()
        self.rg_lru = RGLRU()

    def forward(self, x: Tensor, segment_pos: Tensor) -> Tensor:
        y = nn.functional.gelu(self.linear_y(x), approximate="tanh")
        x = self.conv_1d(self.linear_x(x), segment_pos)
        out: Tensor = self.linear_out(self.rg_lru(x, segment_pos) * y)
        return out


def apply_rope(inputs: Tensor, positions: Tensor) -> Tensor:
    """Turns the first half of each head."""
    x_rope, x = torch.chunk(inputs, 2, dim=-1)
    max_wavelength, dim = 10000.0, x_rope.shape[-1]
    freq = torch.arange(dim // 2, device=x.device) * 2 / dim
    timescale = max_wavelength**freq
    sinusoid = (positions[..., None] / timescale)[..., None, :]
    sin, cos = torch.sin(sinusoid), torch.cos(sinusoid)
    first, second = torch.chunk(x_rope, 2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, x], dim=-1)


class LocalAttentionBlock(nn.Module):
    """Ten heads of queries, one of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.proj_q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.proj_k = nn.Linear(WIDTH, HEAD_DIM, bias=False)
        self.proj_v = nn.Linear(WIDTH, HEAD_DIM, bias=False)
        self.proj_final = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, segment_pos: Tensor) -> Tensor:
        b, t, _ = x.shape
        queries = apply_rope(self.proj_q(x).reshape(b, t, HEADS, HEAD_DIM), segment_pos)
        keys = apply_rope(self.proj_k(x).reshape(b, t, 1, HEAD_DIM), segment_pos)
        values = self.proj_v(x).reshape(b, t, 1, HEAD_DIM)

        segment_ids = torch.cumsum(segment_pos == 0, dim=-1)
        positions = torch.arange(t, device=x.device)
        mask = segment_ids[:, :, None] == segment_ids[:, None, :]
        mask = mask & (positions[None, :] <= positions[:, None])
        mask = mask & (positions[None, :] > positions[:, None] - WINDOW)

        logits = torch.einsum("bthd,bsd->bhts", queries, keys[:, :, 0]) * (HEAD_DIM**-0.5)
        masked_logits = torch.where(mask[:, None], logits, MIN_LOGITS).type(torch.float32)
        probs = nn.functional.softmax(masked_logits, dim=-1).type_as(x)
        encoded = torch.einsum("bhts,bsd->bthd", probs, values.squeeze(2))
        out: Tensor = self.proj_final(encoded.reshape(b, t, WIDTH))
        return out


class ResidualBlock(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.temporal_pre_norm, self.channel_pre_norm = RMSNorm(), RMSNorm()
        self.temporal = RecurrentBlock() if kind == "recurrent" else LocalAttentionBlock()
        self.ffw_up_w = nn.Parameter(torch.randn(2, WIDTH, EXPANDED) / math.sqrt(WIDTH))
        self.ffw_up_b = nn.Parameter(torch.zeros(2, 1, 1, EXPANDED))
        self.ffw_down = nn.Linear(EXPANDED, WIDTH)

    def forward(self, raw_x: Tensor, segment_pos: Tensor) -> Tensor:
        residual = self.temporal(self.temporal_pre_norm(raw_x), segment_pos) + raw_x
        x = self.channel_pre_norm(residual)
        up = torch.einsum("...td,ndD->n...tD", x, self.ffw_up_w) + self.ffw_up_b
        gated = nn.functional.gelu(up[0], approximate="tanh") * up[1]
        out: Tensor = self.ffw_down(gated) + residual
        return out


class Griffin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, WIDTH) / math.sqrt(WIDTH))
        self.blocks = nn.ModuleList([ResidualBlock(kind) for kind in PATTERN])
        self.final_norm = RMSNorm()

    def forward(self, segment_pos: Tensor, tokens: Tensor) -> Tensor:
        x = self.embedding[(tokens,)]
        x = x * torch.tensor(math.sqrt(WIDTH)).type(torch.bfloat16).type_as(x)
        for block in self.blocks:
            x = block(x, segment_pos)
        logits: Tensor = self.final_norm(x) @ self.embedding.T
        return torch.tanh(logits / 30.0) * 30.0


def build() -> nn.Module:
    """int64[batch, 48], twice, to float32[batch, 48, 512]"""
    torch.manual_seed(0)
    return Griffin().eval()
