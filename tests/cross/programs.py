"""Models for what differs between CPUs: vector functions, conversions, operators' kernels."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Functions(nn.Module):
    """Elementary functions, each of which an instruction set has an implementation of."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        positive = x.abs() + 0.5
        return (
            x.exp() + x.expm1() + torch.exp2(x),
            positive.log() + positive.log2() + positive.log10() + positive.log1p(),
            x.sin() + x.cos() + x.tanh() + x.erf() + x.sigmoid(),
            x.sinh() + x.cosh() + x.atan() + torch.atan2(x, positive) + torch.asinh(x),
            positive.sqrt() + positive.rsqrt() + positive.pow(1.7) + positive.reciprocal(),
            torch.fmod(x, positive) + torch.copysign(positive, x) + torch.hypot(x, positive),
            x.floor() + x.ceil() + x.round() + x.trunc() + x.frac(),
            torch.erfc(x) + torch.lgamma(positive) + nn.functional.gelu(x),
        )


class Conversions(nn.Module):
    """Number types into each other, comparisons, and selections."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        whole = (x * 20).to(torch.int32)
        return (
            x.to(torch.bfloat16),
            x.to(torch.float16),
            x.double().exp() + whole.double(),
            torch.where(x > 0, x, -x * 2),
            whole.to(torch.int8).to(torch.int64) * 3 // 2,
            (whole & 255).to(torch.uint8) ^ 85,
            (x > 0.5) | ~(x < -0.5),
            torch.maximum(x, x.flip(0)).clamp(-1, 2) + x.nan_to_num(),
        )


class Reductions(nn.Module):
    """Sums, extremes, and moments, along both dims."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (
            x.sum(0) + x.mean(0) + x.amax(0) + x.amin(0),
            x.sum(1) + x.prod(1) + x.std(1) + x.logsumexp(1),
            x.argmax(1) + x.argmin(1),
            x.softmax(1) + x.log_softmax(0) + nn.functional.layer_norm(x, (77,)),
            x.cumsum(1) + x.sort(1).values,
            (x > 0).any(1) & (x < 9).all(1),
        )


class Network(nn.Module):
    """Convolutions, attention, and matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 24, 3, padding=1)
        self.depthwise = nn.Conv2d(24, 24, 5, stride=2, padding=2, groups=24)
        self.norm = nn.BatchNorm2d(24)
        self.table = nn.Embedding(50, 24)
        self.query = nn.Linear(24, 24)
        self.out = nn.Linear(24, 10)

    def forward(self, pictures: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        seen = nn.functional.relu(self.norm(self.depthwise(self.conv(pictures))))
        keys = nn.functional.max_pool2d(seen, 2).flatten(2).transpose(1, 2)
        query = self.query(self.table(ids))
        mixed = nn.functional.scaled_dot_product_attention(query, keys, keys)
        return self.out(mixed), torch.bmm(query, keys.transpose(1, 2))


def network() -> nn.Module:
    torch.manual_seed(0)
    return Network().eval()
