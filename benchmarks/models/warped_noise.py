"""Glow: images from noise, by the inverse of 1x1 convolutions, couplings and squeezes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 32
FLOWS = 3
BLOCKS = 3


class ActNorm(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.loc = nn.Parameter(torch.randn(1, channels, 1, 1) * 0.1)
        self.scale = nn.Parameter(torch.rand(1, channels, 1, 1) * 0.6 + 0.9)

    def reverse(self, output: Tensor) -> tuple[Tensor, Tensor]:
        _, _, height, width = output.shape
        logdet = height * width * torch.sum(torch.log(torch.abs(self.scale)))
        return output / self.scale - self.loc, -logdet


class InvConv2dLU(nn.Module):
    """A rotation of channels, kept as its LU decomposition and inverted on each call."""

    w_p: Tensor
    u_mask: Tensor
    l_mask: Tensor
    s_sign: Tensor
    l_eye: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        q, _ = torch.linalg.qr(torch.randn(channels, channels))
        w_p, w_l, w_u = torch.linalg.lu(q)
        w_s = torch.diagonal(w_u)
        u_mask = torch.triu(torch.ones_like(w_u), 1)
        self.register_buffer("w_p", w_p)
        self.register_buffer("u_mask", u_mask)
        self.register_buffer("l_mask", u_mask.T.contiguous())
        self.register_buffer("s_sign", torch.sign(w_s))
        self.register_buffer("l_eye", torch.eye(channels))
        self.w_l = nn.Parameter(w_l)
        self.w_s = nn.Parameter(torch.log(torch.abs(w_s)))
        self.w_u = nn.Parameter(torch.triu(w_u, 1))

    def calc_weight(self) -> Tensor:
        return (
            self.w_p
            @ (self.w_l * self.l_mask + self.l_eye)
            @ ((self.w_u * self.u_mask) + torch.diag(self.s_sign * torch.exp(self.w_s)))
        )

    def reverse(self, output: Tensor) -> tuple[Tensor, Tensor]:
        _, _, height, width = output.shape
        inverse = self.calc_weight().double().inverse().float()
        logdet = height * width * torch.sum(self.w_s)
        return functional.conv2d(output, inverse.unsqueeze(2).unsqueeze(3)), -logdet


class ZeroConv2d(nn.Module):
    def __init__(self, in_channel: int, out_channel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channel, out_channel, 3, padding=0)
        nn.init.normal_(self.conv.weight, 0.0, 0.02)
        self.scale = nn.Parameter(torch.randn(1, out_channel, 1, 1) * 0.1)

    def forward(self, input: Tensor) -> Tensor:
        # Ones beyond the edges tell the convolution where the image ends.
        out: Tensor = self.conv(functional.pad(input, [1, 1, 1, 1], value=1))
        return out * torch.exp(self.scale * 3)


class AffineCoupling(nn.Module):
    def __init__(self, in_channel: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(in_channel // 2, HIDDEN, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(HIDDEN, HIDDEN, 1),
            nn.ReLU(inplace=True),
            ZeroConv2d(HIDDEN, in_channel),
        )

    def reverse(self, output: Tensor) -> tuple[Tensor, Tensor]:
        out_a, out_b = output.chunk(2, 1)
        log_s, t = self.net(out_a).chunk(2, 1)
        s = torch.sigmoid(log_s + 2)
        in_b = out_b / s - t
        return torch.cat([out_a, in_b], 1), -torch.sum(torch.log(s).flatten(1), 1)


class Block(nn.Module):
    def __init__(self, in_channel: int, split: bool) -> None:
        super().__init__()
        squeezed = in_channel * 4
        self.flows = nn.ModuleList(
            nn.ModuleList([ActNorm(squeezed), InvConv2dLU(squeezed), AffineCoupling(squeezed)])
            for _ in range(FLOWS)
        )
        self.split = split
        half = squeezed // 2 if split else squeezed
        self.prior = ZeroConv2d(half, half * 2)

    def reverse(self, output: Tensor | None, eps: Tensor) -> tuple[Tensor, Tensor]:
        seen = torch.zeros_like(eps) if output is None else output
        mean, log_sd = self.prior(seen).chunk(2, 1)
        z = mean + torch.exp(log_sd) * eps
        log_p = (
            -0.5 * math.log(2 * math.pi) - log_sd - 0.5 * (z - mean) ** 2 / torch.exp(2 * log_sd)
        )
        total = -log_p.view(log_p.shape[0], -1).sum(1)
        x = z if output is None else torch.cat([output, z], 1)
        for flow in self.flows[::-1]:
            for layer in list(flow)[::-1]:  # type: ignore[call-overload]
                x, logdet = layer.reverse(x)
                total = total + logdet
        b, c, h, w = x.shape
        x = x.view(b, c // 4, 2, 2, h, w)
        x = x.permute(0, 1, 4, 2, 5, 3)
        return x.contiguous().view(b, c // 4, h * 2, w * 2), total


class Glow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(3 * 2**i, split=i < BLOCKS - 1) for i in range(BLOCKS))

    def forward(self, fine: Tensor, middle: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
        x: Tensor | None = None
        total = torch.zeros(coarse.shape[0], device=coarse.device)
        for block, eps in zip(reversed(self.blocks), (coarse, middle, fine)):
            x, logdet = block.reverse(x, eps)  # type: ignore[operator]
            total += logdet
        assert x is not None
        return x.clamp(-3.0, 3.0), total / (math.log(2) * 32 * 32 * 3)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Glow().eval()
