"""Operators of libraries whose own bodies depend on values, written anew in PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _grouped_mm(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """transformers' product of each row with the matrix of its expert.

    Rows are sorted by expert, and ``offs`` has the end of each expert's rows. As in transformers'
    ``batched_mm``, each row reads its matrix by itself. Rows behind the last end are zero.
    """
    experts = weight.shape[0]
    rows = torch.arange(input.shape[0], device=input.device)
    expert = (rows.unsqueeze(1) >= offs).sum(1)
    product = torch.bmm(input.unsqueeze(1), weight[expert.clamp(max=experts - 1)]).squeeze(1)
    return torch.where((expert < experts).unsqueeze(1), product, torch.zeros_like(product))


BODIES: dict[str, Callable[..., Any]] = {"transformers::grouped_mm_fallback": _grouped_mm}
