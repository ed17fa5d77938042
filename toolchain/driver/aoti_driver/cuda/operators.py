"""PyTorch's operators by their names."""

from __future__ import annotations

from typing import Any

import torch


def find(name: str) -> Any:
    """The operator that str() writes so, such as ``aten.sort.stable``."""
    namespace, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)
