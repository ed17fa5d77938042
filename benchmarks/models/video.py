"""A network of volumes for eight pictures of 112 x 112."""

from __future__ import annotations

import torch
from torch import nn

CLASSES = 400


def convolution(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv3d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm3d(outputs),
        nn.ReLU(),
    )


def build() -> nn.Module:
    """float32[batch, 3, 8, 112, 112] to float32[batch, 400]"""
    torch.manual_seed(0)
    stem = nn.Conv3d(3, 32, (3, 7, 7), (1, 2, 2), padding=(1, 3, 3), bias=False)
    return nn.Sequential(
        stem,
        nn.BatchNorm3d(32),
        nn.ReLU(),
        convolution(32, 32, 1),
        convolution(32, 64, 2),
        convolution(64, 64, 1),
        convolution(64, 128, 2),
        convolution(128, 128, 1),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(128, CLASSES),
    ).eval()
