"""Compares results with eager PyTorch's."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The bits of a number, the first of which is not stored.
_DIGITS = {torch.bfloat16: 8, torch.float16: 11}


def assert_alike(
    actual: Tensor, eager: Tensor, unrounded: Tensor | None = None, name: str = ""
) -> None:
    """Integers are equal, float32 and float64 are to 1e-5 of the largest number, bfloat16 and
    float16 to two units in its last place.

    unrounded: what eager PyTorch gives in float64, where it rounds to bfloat16 or float16 between
    its steps: that alone may be two units.
    """
    assert (actual.dtype, actual.shape) == (eager.dtype, eager.shape), name
    expected, limit = eager, 0.0
    if eager.is_floating_point():
        expected = eager if unrounded is None else unrounded
        largest = float(expected.nan_to_num().abs().max())
        digits = _DIGITS.get(eager.dtype)
        unit = 0.0 if digits is None else 2.0 ** (math.frexp(largest)[1] - digits)
        limit = 2 * unit or 1e-5 * max(largest, 1)
    torch.testing.assert_close(
        actual.to(expected.dtype),
        expected,
        rtol=0,
        atol=limit,
        equal_nan=True,
        msg=lambda text: f"{name}: {text}",
    )
