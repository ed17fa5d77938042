"""Discrete: VQGAN, a picture to the nearest entries of a codebook and back."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 32
MULTIPLES = (1, 2, 2)
LATENT = 32
ENTRIES = 256


def nonlinearity(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def normalize(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(num_groups=32, num_channels=channels, eps=1e-6, affine=True)


class Upsample(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        result: Tensor = self.conv(x)
        return result


class Downsample(nn.Module):
    """Every other pixel of a convolution, padded on the right and at the bottom alone."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2, padding=0)

    def forward(self, x: Tensor) -> Tensor:
        pad = (0, 1, 0, 1)
        x = functional.pad(x, pad, mode="constant", value=0)
        result: Tensor = self.conv(x)
        return result


class ResnetBlock(nn.Module):
    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = normalize(i), nn.Conv2d(i, o, 3, 1, 1)
        self.norm2, self.conv2 = normalize(o), nn.Conv2d(o, o, 3, 1, 1)
        self.dropout = nn.Dropout(0.0)
        self.nin_shortcut = nn.Conv2d(i, o, 1) if i != o else None

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(nonlinearity(self.norm1(x)))
        h = self.conv2(self.dropout(nonlinearity(self.norm2(h))))
        if self.nin_shortcut is not None:
            x = self.nin_shortcut(x)
        result: Tensor = x + h
        return result


class AttnBlock(nn.Module):
    """Attention between pixels by two batched products, keys in columns."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = normalize(channels)
        self.q, self.k, self.v, self.proj_out = (nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        h_ = self.norm(x)
        q, k, v = self.q(h_), self.k(h_), self.v(h_)
        b, c, h, w = q.shape
        q = q.reshape(b, c, h * w).permute(0, 2, 1)
        k = k.reshape(b, c, h * w)
        w_ = torch.bmm(q, k) * (int(c) ** (-0.5))
        w_ = functional.softmax(w_, dim=2)
        v = v.reshape(b, c, h * w)
        h_ = torch.bmm(v, w_.permute(0, 2, 1)).reshape(b, c, h, w)
        result: Tensor = x + self.proj_out(h_)
        return result


class VectorQuantizer(nn.Module):
    """The nearest entry of the codebook to each pixel, taken by a product with one-hot rows."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(ENTRIES, LATENT)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        z = z.permute(0, 2, 3, 1).contiguous()
        z_flattened = z.view(-1, LATENT)
        d = (
            torch.sum(z_flattened**2, dim=1, keepdim=True)
            + torch.sum(self.embedding.weight**2, dim=1)
            - 2 * torch.matmul(z_flattened, self.embedding.weight.t())
        )
        indices = torch.argmin(d, dim=1).unsqueeze(1)
        encodings = torch.zeros(indices.shape[0], ENTRIES).to(z)
        encodings.scatter_(1, indices, 1)
        z_q = torch.matmul(encodings, self.embedding.weight).view(z.shape)
        z_q = z + (z_q - z).detach()
        z_q = z_q.permute(0, 3, 1, 2).contiguous()
        return z_q, indices.view(z.shape[0], z.shape[1], z.shape[2])


class VQModel(nn.Module):
    """A picture to what the decoder makes of its codes, and the codes."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [CHANNELS * multiple for multiple in MULTIPLES]
        down: list[nn.Module] = [nn.Conv2d(3, CHANNELS, 3, 1, 1)]
        for i, o in zip([CHANNELS, *sizes], sizes, strict=False):
            down += [ResnetBlock(i, o), Downsample(o)]
        up: list[nn.Module] = []
        for i, o in zip([sizes[-1], *sizes[::-1]], sizes[::-1], strict=False):
            up += [ResnetBlock(i, o), Upsample(o)]
        last = sizes[-1]
        self.encoder = nn.Sequential(*down[:-1], AttnBlock(last), ResnetBlock(last, last))
        self.norm_in, self.conv_in = normalize(last), nn.Conv2d(last, LATENT, 3, 1, 1)
        self.quant_conv, self.quantize = nn.Conv2d(LATENT, LATENT, 1), VectorQuantizer()
        self.post_quant_conv = nn.Conv2d(LATENT, LATENT, 1)
        self.decoder = nn.Sequential(
            nn.Conv2d(LATENT, last, 3, 1, 1), ResnetBlock(last, last), AttnBlock(last), *up[:-1]
        )
        self.norm_out, self.conv_out = normalize(CHANNELS), nn.Conv2d(CHANNELS, 3, 3, 1, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        h = self.conv_in(nonlinearity(self.norm_in(self.encoder(image))))
        quant, codes = self.quantize(self.quant_conv(h))
        h = self.decoder(self.post_quant_conv(quant))
        return self.conv_out(nonlinearity(self.norm_out(h))), codes


def build() -> nn.Module:
    torch.manual_seed(0)
    model = VQModel()
    nn.init.normal_(model.quant_conv.weight, std=0.3)
    nn.init.normal_(model.quantize.embedding.weight)
    return model.eval()
