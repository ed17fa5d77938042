"""The dtype in which PyTorch adds up."""

from __future__ import annotations

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """In float32, if it is of half precision: PyTorch rounds its sums once, at their end."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
