"""A model for both devices on a machine without a usable NVIDIA driver."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

decoder: Any = importlib.import_module("tests.cuda.decoder")


def test_the_cpu_needs_no_driver() -> None:
    token = np.array([3])
    (given,) = decoder.load(device="cpu")(token)
    (default,) = decoder.load()(token)
    np.testing.assert_array_equal(np.asarray(given), np.asarray(default))


def test_cuda_says_that_the_driver_is_missing() -> None:
    expected = r"decoder: running on a GPU needs libcuda\.so\.1 of the NVIDIA driver 525"
    with pytest.raises(RuntimeError, match=expected):
        decoder.load(device="cuda")


def test_an_unknown_device() -> None:
    expected = '^decoder: device is "gpu", must be "cpu", "cuda" or None$'
    with pytest.raises(ValueError, match=expected):
        decoder.load(device="gpu")
