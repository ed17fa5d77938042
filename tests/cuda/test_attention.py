"""The kernels of attention in the emulator against eager PyTorch.

Sizes are no multiples of a tile, and keys are split between blocks where there are many.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from tests.cuda import attention_py
from tests.cuda.alike import assert_alike

Inputs = tuple[Tensor, ...]


def masks(batch: int, queries: int, keys: int) -> Inputs:
    """The last row of the batch sees nothing. Of the bias, the last query's is the least number,
    and the first one's is minus infinity.
    """
    seen = torch.rand(batch, keys) > 0.3
    seen[-1] = False
    bias = torch.randn(queries, keys)
    bias[-1] = torch.finfo(torch.float32).min
    bias[0] = -math.inf
    query = torch.randn(batch, 4, queries, 24)
    key, value = (torch.randn(batch, 2, keys, 24) for _ in range(2))
    return query, key, value, seen, bias


def causal(batch: int, queries: int, keys: int) -> Inputs:
    key, value = torch.randn(keys, 2, 16), torch.randn(keys, 2, 40)
    return torch.randn(batch, queries, 2, 16), key, value


def decode(batch: int, keys: int) -> Inputs:
    """Each row of the batch sees one key less."""
    query, cache = torch.randn(batch, 1, 256), torch.randn(2, batch, keys, 64)
    return query.bfloat16(), cache.bfloat16(), keys - torch.arange(batch)


def plain(batch: int, queries: int, keys: int) -> Inputs:
    return torch.randn(batch, queries, 16).half(), torch.randn(batch, keys, 16).half()


CALLS: Sequence[tuple[Callable[..., Inputs], tuple[int, ...]]] = [
    (masks, (1, 1, 1)),
    (masks, (3, 33, 70)),
    (masks, (2, 3, 530)),
    (causal, (1, 1, 65)),
    (causal, (2, 65, 33)),
    (causal, (1, 35, 600)),
    (decode, (1, 1)),
    (decode, (3, 65)),
    (decode, (2, 1290)),
    (plain, (1, 5, 1)),
    (plain, (3, 70, 33)),
]


@pytest.mark.parametrize(
    ("inputs", "sizes"), CALLS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_like_eager(inputs: Callable[..., Inputs], sizes: tuple[int, ...]) -> None:
    name = inputs.__name__
    torch.manual_seed(0)  # as the build does before it makes the weights
    module = getattr(attention_py, name.capitalize())().eval()
    args = inputs(*sizes)
    with torch.no_grad():
        expected = module(*args)
    results: Any = importlib.import_module(f"tests.cuda.{name}").load()(*args)
    for result, tensor in zip(
        results, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        assert not tensor.isnan().any()
        assert_alike(from_dlpack(result), tensor)
