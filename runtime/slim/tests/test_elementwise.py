"""Elementwise operators, cat, pad and views against PyTorch."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, REAL, make

slim = harness.load()

COMPLEX = [torch.complex64, torch.complex128]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
shapes = st.sampled_from([(), (1,), (0,), (7,), (5, 13), (3, 0), (2, 3, 17), (2, 4, 1, 6)])


@settings(max_examples=100)
@given(shape=shapes, dtype=st.sampled_from([*REAL[:-1], *COMPLEX]), layout=st.sampled_from(LAYOUTS))
def test_abs_and_angle(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> None:
    x = make(shape, dtype, layout)
    for name in ("abs", "angle"):
        (got,) = slim.call(f"aoti_torch_cpu_{name}", x)
        # PyTorch's angle of complex numbers is contiguous, but Inductor expects other strides.
        strides = x.numel() > 1 and not (dtype.is_complex and name == "angle")
        harness.assert_equal(got, getattr(torch, name)(x), strides=strides)


def test_abs_of_the_least_integer() -> None:
    x = torch.tensor([-128, 127], dtype=torch.int8)
    (got,) = slim.call("aoti_torch_cpu_abs", x)
    harness.assert_equal(got, x.abs())


@settings(max_examples=300)
@given(
    shape=shapes,
    other=st.sampled_from(["same", "row", "scalar"]),
    dtypes=st.tuples(st.sampled_from(REAL + COMPLEX), st.sampled_from(REAL + COMPLEX)),
    layout=st.sampled_from(LAYOUTS),
    alpha=st.sampled_from([1, 2]),
)
def test_add_and_mul(
    shape: tuple[int, ...], other: str, dtypes: Sequence[torch.dtype], layout: str, alpha: int
) -> None:
    x = make(shape, dtypes[0], layout)
    y = make({"same": shape, "row": shape[1:], "scalar": ()}[other], dtypes[1], layout, seed=1)
    dtype = torch.result_type(x, y)
    if dtype == torch.complex32:
        return  # float16 with a complex scalar is not supported
    if dtype.is_complex:  # PyTorch multiplies infinities differently
        x, y = (make(tuple(t.shape), t.dtype, layout, seed=2, special=False) for t in (x, y))
    expected = torch.mul(x, y)
    low: dict[str, Any] = {"rtol": 1e-2, "atol": 1e-2} if dtype in FLOATS[:2] else {}
    (got,) = slim.call("aoti_torch_cpu_mul_Tensor", x, y)
    harness.assert_equal(got, expected, strides=expected.numel() > 1, **low)
    if dtype != torch.bool or alpha == 1:
        (got,) = slim.call("aoti_torch_cpu_add_Tensor", x, y, float(alpha))
        expected = torch.add(x, y, alpha=alpha) if dtype != torch.bool else torch.add(x, y)
        harness.assert_equal(got, expected, strides=expected.numel() > 1, **low)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_numbers(dtype: torch.dtype) -> None:
    x = make((5, 7), dtype, "transposed", special=False)
    (got,) = slim.call("aoti_torch_cpu_add_Scalar", x, 1.5, 2.0)
    harness.assert_equal(got, torch.add(x, 1.5, alpha=2.0), strides=True)
    (got,) = slim.call("aoti_torch_cpu_mul_Scalar", x, -2.5)
    harness.assert_equal(got, torch.mul(x, -2.5), strides=True)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 2.5])
def test_pow_of_floating(dtype: torch.dtype, exponent: float) -> None:
    x = make((5, 7), dtype, "transposed", special=False)
    if dtype.is_complex:
        x = x + 0.1  # 0 to a negative power is NaN in PyTorch, infinite in C
    tolerance: dict[str, Any] = (
        {"rtol": 1e-2, "atol": 1e-2} if dtype in FLOATS[:2] else {"rtol": 1e-5, "atol": 1e-5}
    )
    (got,) = slim.call("aoti_torch_cpu_pow_Tensor_Scalar", x, exponent)
    harness.assert_equal(got, torch.pow(x, exponent), strides=True, **tolerance)
    y = torch.full_like(x, exponent)
    (got,) = slim.call("aoti_torch_cpu_pow_Tensor_Tensor", x, y)
    harness.assert_equal(got, torch.pow(x, y), strides=True, **tolerance)
    (got,) = slim.call("aoti_torch_cpu_pow_Scalar", 1.5, x)
    # PyTorch's result is contiguous here, but Inductor expects other strides.
    harness.assert_equal(got, torch.pow(1.5, x), **tolerance)
    assert got.stride() == x.stride()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers(dtype: torch.dtype) -> None:
    x, y = make((5, 7), dtype), make((5, 7), dtype, seed=1)
    (got,) = slim.call("aoti_torch_cpu_gcd", x, y)
    harness.assert_equal(got, torch.gcd(x, y))
    exponents = y.abs() % 7
    (got,) = slim.call("aoti_torch_cpu_pow_Tensor_Tensor", x, exponents)
    harness.assert_equal(got, torch.pow(x, exponents))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_polar(dtype: torch.dtype) -> None:
    r, phi = make((5, 7), dtype, special=False), make((7,), dtype, special=False, seed=1)
    (got,) = slim.call("aoti_torch_cpu_polar", r, phi)
    harness.assert_equal(got, torch.polar(r, phi.expand(5, 7)))


def test_fill_and_hann_window() -> None:
    for dtype in [*REAL, *COMPLEX]:
        x = make((5, 7), dtype, "transposed")
        slim.call("aoti_torch_cpu_fill__Scalar", x, 1.0)
        harness.assert_equal(x, torch.ones_like(x))
    for length in (0, 1, 2, 400):
        (got,) = slim.call("aoti_torch_cpu_hann_window", length, None, None, None, 0, None)
        harness.assert_equal(got, torch.hann_window(length), rtol=1e-5, atol=1e-6)


@settings(max_examples=150)
@given(
    shape=st.sampled_from([(7,), (5, 13), (3, 0), (2, 3, 17), (2, 4, 3, 6)]),
    dtypes=st.lists(st.sampled_from(REAL + COMPLEX), min_size=1, max_size=3),
    memory=st.sampled_from(["plain", "transposed", "sliced", "channels_last"]),
    same=st.booleans(),
    data=st.data(),
)
def test_cat(
    shape: tuple[int, ...],
    dtypes: Sequence[torch.dtype],
    memory: str,
    same: bool,
    data: st.DataObject,
) -> None:
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    tensors = []
    for i, dtype in enumerate(dtypes):
        size = list(shape)
        size[dim] = data.draw(st.integers(0, 5))
        x = make(
            tuple(size),
            dtypes[0] if same else dtype,
            memory if memory != "channels_last" else "plain",
            seed=i,
        )
        if memory == "channels_last" and len(shape) == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        tensors.append(x)
    tensors.append(torch.zeros(0, dtype=tensors[0].dtype))
    expected = torch.cat(tensors, dim)
    (got,) = slim.call("aoti_torch_cpu_cat", tensors, dim)
    plain = len(tensors) == 2 or memory != "channels_last"
    harness.assert_equal(
        got, expected, strides=plain and expected.numel() > 1 and memory != "channels_last"
    )


def test_cat_keeps_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    for dim in range(4):
        (got,) = slim.call("aoti_torch_cpu_cat", [x, x], dim)
        harness.assert_equal(got, torch.cat([x, x], dim), strides=True)
    with pytest.raises(harness.OpError, match="a tensor is of size 4 in dim 2, another of size 2"):
        slim.call("aoti_torch_cpu_cat", [x[:, :, :2], x], 1)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "pads"),
    [
        ((2, 9), (3, 2)),
        ((2, 3, 7), (0, 6)),
        ((2, 3, 7, 5), (1, 2, 3, 4)),
        ((1, 2, 7, 5, 6), (1, 2, 3, 4, 5, 1)),
    ],
)
def test_pad(mode: str, layout: str, shape: tuple[int, ...], pads: tuple[int, ...]) -> None:
    x = make(shape, torch.float32, layout)
    if mode == "circular" and len(shape) == 2:
        pytest.skip("PyTorch does not have this for 2 dims")
    (got,) = slim.call("aoti_torch_cpu_pad", x, list(pads), mode, None)
    harness.assert_equal(got, torch.nn.functional.pad(x, pads, mode), rtol=0, atol=0)


def test_pad_with_a_value_and_negative_pads() -> None:
    x = make((4, 5), torch.int64)
    for pads in ([1, -2, -1, 3], [-5, 0], [2, 2]):
        (got,) = slim.call("aoti_torch_cpu_pad", x, pads, "constant", 7.0)
        harness.assert_equal(got, torch.nn.functional.pad(x, pads, value=7))
    with pytest.raises(harness.OpError, match="removes more elements than dim 1 has"):
        slim.call("aoti_torch_cpu_pad", x, [-6, 0], "constant", None)
    with pytest.raises(
        harness.OpError, match="reflect needs a padding smaller than dim 1 of size 5"
    ):
        slim.call("aoti_torch_cpu_pad", x, [5, 0], "reflect", None)


view_shapes = st.sampled_from([(1,), (7,), (5, 12), (3, 0), (2, 3, 16), (4, 1, 6)])


@settings(max_examples=150)
@given(shape=view_shapes, layout=st.sampled_from(LAYOUTS), data=st.data())
def test_narrow_slice_permute_squeeze(
    shape: tuple[int, ...], layout: str, data: st.DataObject
) -> None:
    x = make(shape, torch.float32, layout)
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
    size = x.shape[dim]
    start = data.draw(st.integers(0, size))
    length = data.draw(st.integers(0, size - start))
    views = [
        (slim.call("aoti_torch_cpu_narrow", x, dim, start, length), x.narrow(dim, start, length))
    ]
    first, last = data.draw(st.tuples(*[st.one_of(st.none(), st.integers(-20, 20))] * 2))
    step = data.draw(st.integers(1, 4))
    views.append(
        (
            slim.call("aoti_torch_cpu_slice_Tensor", x, dim, first, last, step),
            torch.ops.aten.slice.Tensor(x, dim, first, last, step),
        )
    )
    order = data.draw(st.permutations(range(x.dim())))
    views.append((slim.call("aoti_torch_cpu_permute", x, order), x.permute(order)))
    views.append((slim.call("aoti_torch_cpu_squeeze_dim", x, dim), x.squeeze(dim)))
    for (got,), expected in views:
        harness.assert_equal(got, expected, rtol=0, atol=0, strides=True)


@settings(max_examples=150)
@given(
    case=st.sampled_from(
        [
            ((12,), (3, 4)),
            ((3, 4), (-1,)),
            ((2, 3, 4), (6, 4)),
            ((2, 3, 4), (2, 2, -1)),
            ((4, 1, 6), (24,)),
            ((3, 0), (0, 5)),
            ((1,), ()),
            ((2, 6), (2, 1, 2, 3, 1)),
        ]
    ),
    layout=st.sampled_from(LAYOUTS),
)
def test_reshape(case: tuple[tuple[int, ...], tuple[int, ...]], layout: str) -> None:
    x = make(case[0], torch.float32, layout)
    (got,) = slim.call("aoti_torch_cpu_reshape", x, list(case[1]))
    expected = x.reshape(case[1])
    harness.assert_equal(got, expected, rtol=0, atol=0, strides=expected.numel() > 1)


def test_views_of_other_dtypes() -> None:
    z = make((5, 7), torch.complex64, "transposed")
    (got,) = slim.call("aoti_torch_cpu_view_as_real", z)
    harness.assert_equal(got, torch.view_as_real(z), strides=True)
    x = make((5, 7, 2), torch.float64, special=False).transpose(0, 1)
    (got,) = slim.call("aoti_torch_cpu_view_as_complex", x)
    harness.assert_equal(got, torch.view_as_complex(x), strides=True)
    for dtype in (torch.int32, torch.float64, torch.int16, torch.uint8):
        x = make((3, 8), torch.float32)
        (got,) = slim.call("aoti_torch_cpu_view_dtype", x, dtype)
        harness.assert_equal(got, x.view(dtype), strides=True)


def test_view_errors() -> None:
    x = torch.zeros(3, 5)
    for match, name, *args in (
        (r"start is 6, must be in -5\.\.5", "narrow", 1, 6, 1),
        ("3 elements from 3 on reach past the end of dim 1, of size 5", "narrow", 1, 3, 3),
        ("step is 0, must be positive", "slice_Tensor", 0, None, None, 0),
        ("dim 0 is given twice", "permute", [0, 0]),
        ("the sizes have 14 elements, self has 15", "reshape", [2, 7]),
        ("15 elements can't be split into rows of 2", "reshape", [2, -1]),
        ("can't be viewed as float64", "view_dtype", torch.float64),
        ("must be of size 2 and stride 1", "view_as_complex"),
        ("must be complex", "view_as_real"),
    ):
        with pytest.raises(harness.OpError, match=match):
            slim.call(f"aoti_torch_cpu_{name}", x, *args)


def test_resize() -> None:
    x = torch.arange(6.0)
    handle = slim.borrow(x)
    for shape in ([2, 2], [3, 5]):
        sizes = (ctypes.c_int64 * 2)(*shape)
        assert slim.library.aoti_torch_cpu_resize_(handle, sizes, ctypes.c_int64(2), None) == 0
        got = slim.read(handle)
        assert list(got.shape) == shape
        kept = min(got.numel(), 4)
        harness.assert_equal(got.reshape(-1)[:kept], x[:kept])
    slim.library.aoti_torch_delete_tensor_object(handle)
    assert math.prod(shape) == 15
