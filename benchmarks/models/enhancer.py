"""Enhancer: Real-ESRGAN's RRDBNet, residuals in residuals of densely connected convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

FEATURES = 32
GROWTH = 16
BLOCKS = 2
SCALE = 2


def pixel_unshuffle(x: Tensor, scale: int) -> Tensor:
    """Lays the pixels of scale * scale squares out as channels."""
    b, c, hh, hw = x.size()
    h, w = hh // scale, hw // scale
    x_view = x.view(b, c, h, scale, w, scale)
    return x_view.permute(0, 1, 3, 5, 2, 4).reshape(b, c * scale**2, h, w)


class ResidualDenseBlock(nn.Module):
    """Five convolutions, each of the input and of what all before it gave."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(FEATURES, GROWTH, 3, 1, 1)
        self.conv2 = nn.Conv2d(FEATURES + GROWTH, GROWTH, 3, 1, 1)
        self.conv3 = nn.Conv2d(FEATURES + 2 * GROWTH, GROWTH, 3, 1, 1)
        self.conv4 = nn.Conv2d(FEATURES + 3 * GROWTH, GROWTH, 3, 1, 1)
        self.conv5 = nn.Conv2d(FEATURES + 4 * GROWTH, FEATURES, 3, 1, 1)
        self.lrelu = nn.LeakyReLU(negative_slope=0.2, inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x1 = self.lrelu(self.conv1(x))
        x2 = self.lrelu(self.conv2(torch.cat((x, x1), 1)))
        x3 = self.lrelu(self.conv3(torch.cat((x, x1, x2), 1)))
        x4 = self.lrelu(self.conv4(torch.cat((x, x1, x2, x3), 1)))
        x5: Tensor = self.conv5(torch.cat((x, x1, x2, x3, x4), 1))
        return x5 * 0.2 + x


class RRDB(nn.Module):
    """Three dense blocks, a fifth of which is added to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.rdb1 = ResidualDenseBlock()
        self.rdb2 = ResidualDenseBlock()
        self.rdb3 = ResidualDenseBlock()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.rdb3(self.rdb2(self.rdb1(x)))
        return out * 0.2 + x


class RRDBNet(nn.Module):
    """A picture to one of twice its height and width: halved first, enlarged by four last."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_first = nn.Conv2d(3 * SCALE**2, FEATURES, 3, 1, 1)
        self.body = nn.Sequential(*[RRDB() for _ in range(BLOCKS)])
        self.conv_body = nn.Conv2d(FEATURES, FEATURES, 3, 1, 1)
        self.conv_up1 = nn.Conv2d(FEATURES, FEATURES, 3, 1, 1)
        self.conv_up2 = nn.Conv2d(FEATURES, FEATURES, 3, 1, 1)
        self.conv_hr = nn.Conv2d(FEATURES, FEATURES, 3, 1, 1)
        self.conv_last = nn.Conv2d(FEATURES, 3, 3, 1, 1)
        self.lrelu = nn.LeakyReLU(negative_slope=0.2, inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        feat = self.conv_first(pixel_unshuffle(x, scale=SCALE))
        body_feat = self.conv_body(self.body(feat))
        feat = feat + body_feat
        feat = self.lrelu(
            self.conv_up1(functional.interpolate(feat, scale_factor=2, mode="nearest"))
        )
        feat = self.lrelu(
            self.conv_up2(functional.interpolate(feat, scale_factor=2, mode="nearest"))
        )
        out: Tensor = self.conv_last(self.lrelu(self.conv_hr(feat)))
        return out


def build() -> nn.Module:
    torch.manual_seed(0)
    model = RRDBNet()
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight)
            m.weight.data *= 0.8
    return model.eval()
