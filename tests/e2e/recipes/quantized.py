"""torchao: linear layers with 8-bit weights."""

import torch
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def classifier() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16)).eval()
    quantize_(model, Int8WeightOnlyConfig())
    return model
