"""A model that exists as a TorchScript file only."""

import torch
from torch import nn
from torch._export.converter import TS2EPConverter


def from_weights(path: str) -> nn.Module:
    """Where the Python source exists: the file's weights in it. Dims may be dynamic."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    model.load_state_dict(torch.jit.load(path).state_dict())
    return model


def from_graph(path: str) -> nn.Module:
    """Where it doesn't: the file's own graph, for the sizes of one sample."""
    scripted = torch.jit.load(path).eval()
    converted = TS2EPConverter(scripted, (torch.zeros(3, 4),)).convert()
    return converted.module()
