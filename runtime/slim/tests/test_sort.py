"""sort, topk and related operators against PyTorch."""

from __future__ import annotations

import math

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, REAL, make

slim = harness.load()

shapes = st.sampled_from(
    [(), (1,), (0,), (7,), (5, 13), (3, 0), (2, 3, 17), (1, 1), (31, 4), (900,)]
)


@settings(max_examples=150)
@given(
    shape=shapes,
    dtype=st.sampled_from(REAL),
    layout=st.sampled_from(LAYOUTS),
    descending=st.booleans(),
    data=st.data(),
)
def test_sort_is_stable_and_places_nan_last(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, descending: bool, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout)
    dim = data.draw(st.integers(-max(x.dim(), 1), max(x.dim(), 1) - 1))
    values, indices = slim.call("aoti_torch_cpu_sort_stable", x, True, dim, descending)
    expected = torch.sort(x, dim=dim, descending=descending, stable=True)
    harness.assert_equal(values, expected.values, rtol=0, atol=0, strides=x.numel() > 1)
    assert torch.equal(indices, expected.indices)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 12, 13, 31, 64, 255, 799, 800, 801, 5000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
def test_sort_of_any_length(size: int, dtype: torch.dtype) -> None:
    x = torch.randn(3, size).mul(1000).to(dtype)
    values, indices = slim.call("aoti_torch_cpu_sort", x, -1, False)
    expected = torch.sort(x, stable=True)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)


def test_sort_keeps_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for dim in range(4):
        values, indices = slim.call("aoti_torch_cpu_sort", x, dim, True)
        expected = torch.sort(x, dim=dim, descending=True)
        harness.assert_equal(values, expected.values, strides=True)
        harness.assert_equal(indices, expected.indices, strides=True)


def test_sort_refuses_complex_numbers() -> None:
    with pytest.raises(harness.OpError, match="no order"):
        slim.call("aoti_torch_cpu_sort", torch.zeros(3, dtype=torch.complex64), 0, False)


def test_sort_refuses_a_dim_out_of_range() -> None:
    with pytest.raises(harness.OpError, match=r"dim 2 is out of range -2\.\.1"):
        slim.call("aoti_torch_cpu_sort", torch.zeros(3, 4), 2, False)


@settings(max_examples=150)
@given(
    shape=shapes,
    dtype=st.sampled_from(REAL),
    layout=st.sampled_from(LAYOUTS),
    largest=st.booleans(),
    data=st.data(),
)
def test_topk(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, largest: bool, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout)
    dim = data.draw(st.integers(-max(x.dim(), 1), max(x.dim(), 1) - 1))
    size = x.shape[dim] if x.dim() else 1
    k = data.draw(st.integers(0 if x.dim() else 1, size))
    values, indices = slim.call("aoti_torch_cpu_topk", x, k, dim, largest, True)
    if dtype == torch.bool:
        expected = torch.topk(x.to(torch.uint8), k, dim, largest).values.bool()
    else:
        expected = torch.topk(x, k, dim, largest).values
    harness.assert_equal(values, expected, rtol=0, atol=0, strides=x.numel() > 1)
    # PyTorch returns any of several equal elements; slim returns the first ones.
    assert torch.equal(
        indices,
        x.sort(dim=dim, descending=largest, stable=True).indices.narrow(dim, 0, k)
        if x.dim()
        else torch.zeros((), dtype=torch.int64),
    )


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.float64]
)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 50, 700, 20000])
@pytest.mark.parametrize("nans", [0, 3, 100])
def test_topk_of_a_long_line(dtype: torch.dtype, largest: bool, k: int, nans: int) -> None:
    x = torch.randn(20000, generator=torch.Generator().manual_seed(k)).mul(100).to(dtype)
    if dtype.is_floating_point:
        x[torch.randint(0, 20000, (nans,))] = math.nan
        x[5] = -math.nan
        x[[7, 9, 11]] = torch.tensor([math.inf, -math.inf, -0.0], dtype=dtype)
    values, indices = slim.call("aoti_torch_cpu_topk", x, k, 0, largest, True)
    expected = torch.sort(x, descending=largest, stable=True)
    harness.assert_equal(values, expected.values[:k], rtol=0, atol=0)
    assert torch.equal(indices, expected.indices[:k])


def test_topk_refuses_a_k_out_of_range() -> None:
    with pytest.raises(harness.OpError, match=r"k is 5, must be in 0\.\.4, the size of dim 1"):
        slim.call("aoti_torch_cpu_topk", torch.zeros(3, 4), 5, -1, True, True)


def check_picked(
    x: torch.Tensor, dim: int, keepdim: bool, got: tuple[torch.Tensor, ...], expected: torch.Tensor
) -> None:
    """Ties may be broken differently: the index must lead to the value."""
    values, indices = got
    harness.assert_equal(values, expected, rtol=0, atol=0)
    if x.dim():
        index = indices if keepdim else indices.unsqueeze(dim)
        value = values if keepdim else values.unsqueeze(dim)
        harness.assert_equal(x.gather(dim, index), value, rtol=0, atol=0)


picked_shapes = st.sampled_from([(), (1,), (7,), (5, 13), (2, 3, 17), (0, 3)])


@settings(max_examples=100)
@given(
    shape=picked_shapes,
    dtype=st.sampled_from(REAL[:-1]),
    layout=st.sampled_from(LAYOUTS),
    keepdim=st.booleans(),
    data=st.data(),
)
def test_kthvalue_and_mode(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, keepdim: bool, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout)
    dim = -1
    size = x.shape[dim] if x.dim() else 1
    k = data.draw(st.integers(1, size))
    got = slim.call("aoti_torch_cpu_kthvalue", x, k, dim, keepdim)
    check_picked(x, dim, keepdim, got, torch.kthvalue(x, k, dim, keepdim).values)
    if dtype.is_floating_point:
        x = x.nan_to_num()  # PyTorch's order with NaNs is not consistent
    got = slim.call("aoti_torch_cpu_mode", x, dim, keepdim)
    check_picked(x, dim, keepdim, got, torch.mode(x, dim, keepdim).values)


def test_kthvalue_refuses_a_k_out_of_range() -> None:
    with pytest.raises(harness.OpError, match=r"k is 0, must be in 1\.\.4"):
        slim.call("aoti_torch_cpu_kthvalue", torch.zeros(3, 4), 0, 1, False)
    with pytest.raises(harness.OpError, match="dim 1 is empty"):
        slim.call("aoti_torch_cpu_mode", torch.zeros(3, 0), 1, False)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", REAL[:-1])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (1,), (8,), (5, 13), (2, 3, 17)])
def test_median(name: str, dtype: torch.dtype, layout: str, shape: tuple[int, ...]) -> None:
    x = make(shape, dtype, layout)
    for sample in (x, x.nan_to_num() if dtype.is_floating_point else x):
        (got,) = slim.call(f"aoti_torch_cpu_{name}", sample)
        harness.assert_equal(got, getattr(torch, name)(sample), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_median_of_an_empty_tensor(name: str) -> None:
    for x in (torch.zeros(0), torch.full((3,), math.nan)):
        (got,) = slim.call(f"aoti_torch_cpu_{name}", x)
        harness.assert_equal(got, getattr(torch, name)(x))
