"""Products with matrices of int8, each row of which has a scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def _int8_product(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """[M, K] and int8 [N, K] to [M, N]."""
    result: Tensor = (x @ weight.to(x.dtype).t()) * scales
    return result.to(x.dtype)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._weight_int8pack_mm.default": _int8_product,
}
