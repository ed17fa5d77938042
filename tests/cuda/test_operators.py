"""Each operator of operator_cases.py in the emulator against eager PyTorch."""

from __future__ import annotations

import importlib
import os

import pytest
import torch
from torch.utils.dlpack import from_dlpack

from tests.cuda import operators_py
from tests.cuda.alike import assert_alike
from tests.cuda.operator_cases import RANDOM, sample

DTYPES = os.environ["DTYPES"].split(",")


@pytest.mark.parametrize("dtype", DTYPES)
def test_like_eager(dtype: str) -> None:
    module = getattr(operators_py, dtype.capitalize())()
    x = sample(dtype)
    model = importlib.import_module(f"tests.cuda.operators_{dtype}").load()
    results = iter([from_dlpack(result) for result in model(x)])
    half = x.dtype in (torch.bfloat16, torch.float16)
    for name in module.names:
        eager = module.results(name, x)
        if name in RANDOM:
            for expected in eager:
                actual = next(results)
                assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), name
                assert RANDOM[name][1](actual).all(), (name, actual)
            continue
        unrounded = module.results(name, x.double()) if half else eager
        for expected, exact in zip(eager, unrounded, strict=True):
            assert_alike(next(results), expected, exact, name)
    assert next(results, None) is None
