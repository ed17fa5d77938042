"""Each operator of operator_cases.py in the emulator against eager PyTorch."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from tests.cuda import operators_py
from tests.cuda.operator_cases import RANDOM, sample

DTYPES = os.environ["DTYPES"].split(",")


def tolerance(tensor: Tensor) -> float:
    """Four units in the last place of the largest number, of bfloat16 and float16; else 1e-5.

    Eager PyTorch rounds to these dtypes between the steps of an operator, and kernels do not.
    """
    if not tensor.is_floating_point():
        return 0
    largest = float(tensor.nan_to_num().abs().max())
    digits = {torch.bfloat16: 8, torch.float16: 11}.get(tensor.dtype)
    if digits is None:
        return 1e-5 * max(largest, 1)
    return 4 * 2.0 ** (math.frexp(largest)[1] - digits)


def labelled(name: str) -> Callable[[str], str]:
    return lambda text: f"{name}: {text}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_like_eager(dtype: str) -> None:
    module = getattr(operators_py, dtype.capitalize())()
    x = sample(dtype)
    model = importlib.import_module(f"tests.cuda.operators_{dtype}").load()
    results = iter([from_dlpack(result) for result in model(x)])
    for name in module.names:
        for expected in module.results(name, x):
            actual = next(results)
            if name in RANDOM:
                assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), name
                assert RANDOM[name][1](actual).all(), (name, actual)
                continue
            limits: Any = {"rtol": 0, "atol": tolerance(expected), "equal_nan": True}
            torch.testing.assert_close(actual, expected, **limits, msg=labelled(name))
    assert next(results, None) is None
