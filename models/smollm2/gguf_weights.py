"""Reads the tensors of a GGUF file, dequantized to float32."""

from __future__ import annotations

import torch
from gguf import GGUFReader
from gguf.quants import dequantize


def read_gguf(path: str) -> dict[str, torch.Tensor]:
    """The file's tensors by name, shaped as PyTorch has them (GGUF lists sizes reversed)."""
    tensors = {}
    for tensor in GGUFReader(path).tensors:
        shape = tuple(int(size) for size in reversed(tensor.shape))
        values = dequantize(tensor.data, tensor.tensor_type)
        tensors[tensor.name] = torch.tensor(values, dtype=torch.float32).reshape(shape)
    return tensors
