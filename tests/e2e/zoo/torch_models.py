"""Modules of torch.nn, unchanged."""

import torch
from torch import nn


class Encoder(nn.Module):
    """nn.TransformerEncoder without masks."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layers(x)
        return y


def transformer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Transformer(
        d_model=32,
        nhead=4,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dim_feedforward=64,
        batch_first=True,
    )


def encoder() -> nn.Module:
    torch.manual_seed(0)
    return Encoder()


def lstm() -> nn.Module:
    torch.manual_seed(0)
    return nn.LSTM(input_size=8, hidden_size=16, num_layers=2, batch_first=True)


def convolution() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )
