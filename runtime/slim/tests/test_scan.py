"""Cumulative sums, products, minima and maxima against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, REAL, make

slim = harness.load()

shapes = st.sampled_from([(), (1,), (0,), (7,), (5, 13), (3, 0), (2, 3, 131), (67, 3, 5), (1, 200)])
COMPLEX = [torch.complex64, torch.complex128]


@settings(max_examples=200)
@given(
    name=st.sampled_from(["cumsum", "cumprod"]),
    shape=shapes,
    dtype=st.sampled_from(REAL + COMPLEX),
    to=st.sampled_from([None, None, torch.float32, torch.float64, torch.int64, torch.int16]),
    layout=st.sampled_from(LAYOUTS),
    special=st.booleans(),
    data=st.data(),
)
def test_cumsum_and_cumprod(
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    to: torch.dtype | None,
    layout: str,
    special: bool,
    data: st.DataObject,
) -> None:
    if to is not None and (dtype.is_complex or (special and not to.is_floating_point)):
        to = None
    x = make(shape, dtype, layout, special=special)
    dim = data.draw(st.integers(-max(x.dim(), 1), max(x.dim(), 1) - 1))
    (got,) = slim.call(f"aoti_torch_cpu_{name}", x, dim, to)
    expected = getattr(torch, name)(x, dim, dtype=to)
    harness.assert_equal(got, expected, strides=x.numel() > 1)


def test_a_long_sum_is_kept_in_double() -> None:
    x = torch.full((1_000_000,), 0.1)
    (got,) = slim.call("aoti_torch_cpu_cumsum", x, 0, None)
    harness.assert_equal(got, x.cumsum(0), rtol=0, atol=0)


@settings(max_examples=200)
@given(
    name=st.sampled_from(["cummax", "cummin"]),
    shape=shapes,
    dtype=st.sampled_from(REAL),
    layout=st.sampled_from(LAYOUTS),
    special=st.booleans(),
    data=st.data(),
)
def test_cummax_and_cummin(
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    layout: str,
    special: bool,
    data: st.DataObject,
) -> None:
    x = make(shape, dtype, layout, special=special)
    dim = data.draw(st.integers(-max(x.dim(), 1), max(x.dim(), 1) - 1))
    values, indices = slim.call(f"aoti_torch_cpu_{name}", x, dim)
    expected = getattr(torch, name)(x, dim)
    harness.assert_equal(values, expected.values, rtol=0, atol=0, strides=x.numel() > 1)
    assert torch.equal(indices, expected.indices)


@settings(max_examples=100)
@given(
    shape=shapes,
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
    layout=st.sampled_from(LAYOUTS),
    special=st.booleans(),
    data=st.data(),
)
def test_logcumsumexp(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, special: bool, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout, special=special)
    dim = data.draw(st.integers(-max(x.dim(), 1), max(x.dim(), 1) - 1))
    (got,) = slim.call("aoti_torch_cpu_logcumsumexp", x, dim)
    harness.assert_equal(got, torch.logcumsumexp(x, dim), strides=x.numel() > 1)


@pytest.mark.parametrize("x", [[float("-inf")] * 3, [float("inf")] * 3, [1000.0, 1001.0, -1e4]])
def test_logcumsumexp_of_extremes(x: list[float]) -> None:
    (got,) = slim.call("aoti_torch_cpu_logcumsumexp", torch.tensor(x), 0)
    harness.assert_equal(got, torch.logcumsumexp(torch.tensor(x), 0))


def test_errors() -> None:
    with pytest.raises(harness.OpError, match=r"dim 1 is out of range -1\.\.0"):
        slim.call("aoti_torch_cpu_cumsum", torch.zeros(3), 1, None)
    with pytest.raises(harness.OpError, match="not supported here, must be a floating-point one"):
        slim.call("aoti_torch_cpu_logcumsumexp", torch.zeros(3, dtype=torch.int64), 0)
