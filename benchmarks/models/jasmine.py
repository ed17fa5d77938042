"""QuartzNet: speech recognition by time-channel separable 1d convolutions, masked by length."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

MELS = 64
WIDTH = 96
VOCABULARY = 29
REPEAT = 5
BLOCKS = ((WIDTH, 33), (WIDTH, 39), (2 * WIDTH, 51), (2 * WIDTH, 63), (2 * WIDTH, 75))


def same_padding(kernel_size: int, dilation: int) -> int:
    if dilation > 1:
        return (dilation * (kernel_size - 1) + 1) // 2
    return kernel_size // 2


class MaskedConv1d(nn.Module):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=same_padding(kernel_size, dilation),
            dilation=dilation,
            groups=groups,
            bias=False,
        )

    def get_seq_len(self, lens: torch.Tensor) -> torch.Tensor:
        conv = self.conv
        reach = 2 * int(conv.padding[0]) - conv.dilation[0] * (conv.kernel_size[0] - 1) - 1
        return torch.div(lens + reach, conv.stride[0], rounding_mode="trunc") + 1

    def forward(self, x: torch.Tensor, lens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        max_len = x.size(2)
        mask = torch.arange(max_len, device=lens.device).expand(lens.size(0), max_len)
        mask = mask >= lens.unsqueeze(1)
        x = x.masked_fill(mask.unsqueeze(1), 0)
        return self.conv(x), self.get_seq_len(lens)


class JasperBlock(nn.Module):
    def __init__(
        self,
        inplanes: int,
        planes: int,
        kernel_size: int,
        repeat: int = 1,
        stride: int = 1,
        dilation: int = 1,
        residual: bool = False,
        separable: bool = True,
    ) -> None:
        super().__init__()
        block_input = inplanes
        conv: list[nn.Module] = []
        for i in range(repeat):
            if i > 0:
                conv.extend([nn.ReLU(inplace=True), nn.Dropout(p=0.1)])
            if separable:
                conv.append(
                    MaskedConv1d(inplanes, inplanes, kernel_size, stride, dilation, inplanes)
                )
                conv.append(MaskedConv1d(inplanes, planes, 1))
            else:
                conv.append(MaskedConv1d(inplanes, planes, kernel_size, stride, dilation))
            conv.append(nn.BatchNorm1d(planes, eps=1e-3, momentum=0.1))
            inplanes = planes
        self.mconv = nn.ModuleList(conv)
        self.res = (
            nn.ModuleList(
                [
                    MaskedConv1d(block_input, planes, 1),
                    nn.BatchNorm1d(planes, eps=1e-3, momentum=0.1),
                ]
            )
            if residual
            else None
        )
        self.mout = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(p=0.1))

    def forward(self, x: torch.Tensor, lens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out, lens_orig = x, lens
        for layer in self.mconv:
            if isinstance(layer, MaskedConv1d):
                out, lens = layer(out, lens)
            else:
                out = layer(out)
        if self.res is not None:
            res_out = x
            for layer in self.res:
                if isinstance(layer, MaskedConv1d):
                    res_out, _ = layer(res_out, lens_orig)
                else:
                    res_out = layer(res_out)
            out += res_out
        return self.mout(out), lens


class QuartzNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = [JasperBlock(MELS, WIDTH, 33, stride=2)]
        planes = WIDTH
        for width, kernel_size in BLOCKS:
            blocks.append(JasperBlock(planes, width, kernel_size, REPEAT, residual=True))
            planes = width
        blocks.append(JasperBlock(planes, 2 * WIDTH, 87, dilation=2))
        blocks.append(JasperBlock(2 * WIDTH, 4 * WIDTH, 1, separable=False))
        self.encoder = nn.ModuleList(blocks)
        self.decoder = nn.Conv1d(4 * WIDTH, VOCABULARY, kernel_size=1)

    def forward(
        self, audio_signal: torch.Tensor, length: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        for block in self.encoder:
            audio_signal, length = block(audio_signal, length)
        logits = self.decoder(audio_signal).transpose(1, 2)
        return functional.log_softmax(logits, dim=-1), length


def build() -> nn.Module:
    torch.manual_seed(0)
    module = QuartzNet()
    for part in module.modules():
        if isinstance(part, nn.Conv1d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="linear")
        elif isinstance(part, nn.BatchNorm1d):
            assert part.running_mean is not None and part.running_var is not None
            part.running_mean.copy_(torch.randn_like(part.running_mean) * 0.1)
            part.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -0.1, 0.1)
    with torch.no_grad():
        # Logits that depend on the sound, as after training.
        module.decoder.weight.mul_(6.0)
    return module.eval()
