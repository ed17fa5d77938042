"""Fourier transforms against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from by_name import call_by_name
from harness import OpError, assert_equal, load
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

slim = load()
aten = torch.ops.aten
MKL = torch._C.has_mkl


def c2r(x: Tensor, dims: list[int], normalization: int, size: int) -> Tensor:
    return call_by_name(slim, "_fft_c2r", x, dims, normalization, size)


def close(actual: Tensor, expected: Tensor, layout: bool = MKL) -> None:
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    wide = expected.dtype in (torch.float64, torch.complex128)
    assert_equal(actual, expected, rtol=0, atol=scale * (1e-13 if wide else 1e-6), strides=layout)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("forward", [True, False])
def test_sizes(dtype: torch.dtype, forward: bool) -> None:
    """Powers, products of small primes, and primes large enough for Bluestein's algorithm."""
    for size in [*range(1, 40), 49, 60, 64, 74, 97, 121, 128, 210, 256, 331, 480, 1000, 1024, 2018]:
        x = torch.randn(2, size, dtype=dtype)
        (own,) = slim.call("aoti_torch_cpu__fft_c2c", x, [1], 0, forward)
        close(own, aten._fft_c2c(x, [1], 0, forward))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_real_sizes(dtype: torch.dtype) -> None:
    for size in [*range(1, 20), 37, 64, 94, 100, 331, 512]:
        x = torch.randn(3, size, dtype=dtype)
        for one_sided in (True, False):
            (own,) = slim.call("aoti_torch_cpu__fft_r2c", x, [1], 0, one_sided)
            close(own, aten._fft_r2c(x, [1], 0, one_sided))
        spectrum = torch.randn(3, size // 2 + 1, dtype=torch.complex64).to(
            torch.complex64 if dtype == torch.float32 else torch.complex128
        )
        close(c2r(spectrum, [1], 2, size), aten._fft_c2r(spectrum, [1], 2, size))


@settings(max_examples=60)
@given(data=st.data())
def test_any_dims_and_strides(data: st.DataObject) -> None:
    draw = data.draw
    rank = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 7)) for _ in range(rank)]
    x = torch.randn([2 * sizes[0], *sizes[1:]], dtype=torch.complex64)[:: draw(st.integers(1, 2))]
    x = x.permute(draw(st.permutations(range(rank))))
    dims = draw(st.lists(st.integers(0, rank - 1), min_size=1, unique=True))
    signed = [dim - rank if draw(st.booleans()) else dim for dim in dims]
    normalization = draw(st.integers(0, 2))
    forward, one_sided = draw(st.booleans()), draw(st.booleans())
    (own,) = slim.call("aoti_torch_cpu__fft_c2c", x, signed, normalization, forward)
    close(own, aten._fft_c2c(x, dims, normalization, forward))
    (own,) = slim.call("aoti_torch_cpu__fft_r2c", x.real, signed, normalization, one_sided)
    close(own, aten._fft_r2c(x.real, dims, normalization, one_sided))
    size = 2 * x.shape[dims[-1]] - draw(st.integers(1, 2))
    if size > 0:
        size = size if size // 2 + 1 == x.shape[dims[-1]] else size - 1
    if size > 0 and size // 2 + 1 == x.shape[dims[-1]]:
        close(c2r(x, signed, normalization, size), aten._fft_c2r(x, dims, normalization, size))


def test_no_dims_and_no_elements() -> None:
    x = torch.randn(3, 4, dtype=torch.complex64).t()
    close(slim.call("aoti_torch_cpu__fft_c2c", x, [], 0, 1)[0], x.clone())
    x = torch.zeros(0, 4, dtype=torch.complex64)
    close(slim.call("aoti_torch_cpu__fft_c2c", x, [1], 0, 1)[0], x, layout=False)


def test_infinity_and_nan() -> None:
    x = torch.ones(2, 8)
    x[0, 3] = math.nan
    (own,) = slim.call("aoti_torch_cpu__fft_r2c", x, [1], 0, 1)
    assert own[0].isnan().all() and not own[1].isnan().any()


X = torch.ones(3, 4, dtype=torch.complex64)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("_fft_c2c", (X, [2], 0, 1), "dim 2 is out of range"),
        ("_fft_c2c", (X, [1, -1], 0, 1), "dim -1 is given twice"),
        ("_fft_c2c", (X.real, [1], 0, 1), "must be complex"),
        ("_fft_c2c", (X, [1], 3, 1), "normalization is 3"),
        ("_fft_c2c", (X[:0], [0], 0, 1), "dim 0 is empty"),
        ("_fft_r2c", (X, [1], 0, 1), "complex64, must be float32 or float64"),
        ("_fft_r2c", (X.real, [], 0, 1), "no dims"),
    ],
)
def test_errors(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OpError, match=message):
        slim.call(f"aoti_torch_cpu_{name}", *args)


@pytest.mark.parametrize("size", [0, 3, 9])
def test_size_of_a_real_result(size: int) -> None:
    with pytest.raises(OpError, match="dim 1 has 4 elements"):
        c2r(X, [1], 0, size)
