"""Operators that are called by name, against PyTorch."""

from __future__ import annotations

import ctypes

import dispatcher
import harness
import pytest
import torch
from dispatcher import List, Some
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, REAL, make

slim = harness.load()
shapes = st.sampled_from([(), (1,), (0,), (7,), (5, 13), (2, 3, 17), (900,)])


@settings(max_examples=100)
@given(
    shape=shapes,
    dtype=st.sampled_from(REAL),
    layout=st.sampled_from(LAYOUTS),
    inverse=st.booleans(),
    counts=st.booleans(),
)
def test_unique(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, inverse: bool, counts: bool
) -> None:
    x = make(shape, dtype, layout, special=False)
    got = dispatcher.call(slim, "aten::_unique2", x, True, inverse, counts, results=3)
    expected = torch.ops.aten._unique2.default(x, True, inverse, counts)
    harness.assert_equal(got[0], expected[0])
    if inverse:
        harness.assert_equal(got[1], expected[1])
    if counts:
        harness.assert_equal(got[2], expected[2])
    got = dispatcher.call(slim, "aten::unique_consecutive", x, inverse, counts, None, results=3)
    expected = torch.ops.aten.unique_consecutive.default(x, inverse, counts, None)
    for ours, theirs, asked in zip(got, expected, (True, inverse, counts), strict=True):
        if asked:
            harness.assert_equal(ours, theirs)


def test_each_nan_is_unique() -> None:
    x = torch.tensor([float("nan"), 1.0, -0.0, float("nan"), 0.0])
    got = dispatcher.call(slim, "aten::_unique2", x, True, False, True, results=3)
    harness.assert_equal(got[0], torch.unique(x))
    assert got[2].tolist() == [2, 1, 1, 1]


@settings(max_examples=100)
@given(
    shape=st.sampled_from([(1,), (7,), (13, 2), (2, 17), (3, 4, 2)]),
    dtype=st.sampled_from(REAL),
    layout=st.sampled_from(LAYOUTS),
    data=st.data(),
)
def test_unique_along_a_dim(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout, special=False)
    if dtype != torch.bool:
        x = x.abs() % 2
    dim = data.draw(st.integers(0, x.dim() - 1))
    got = dispatcher.call(slim, "aten::unique_dim", x, dim, True, True, True, results=3)
    for ours, theirs in zip(got, torch.unique(x, True, True, True, dim), strict=True):
        harness.assert_equal(ours, theirs)
    expected = torch.unique_consecutive(x, True, True, dim)
    for name, args in (
        ("aten::unique_dim_consecutive", (dim, True, True)),
        ("aten::unique_consecutive", (True, True, Some(dim))),
    ):
        got = dispatcher.call(slim, name, x, *args, results=3)
        for ours, theirs in zip(got, expected, strict=True):
            harness.assert_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("minlength", [0, 100])
@pytest.mark.parametrize("weights", [None, torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("size", [0, 50])
def test_bincount(
    dtype: torch.dtype, minlength: int, weights: torch.dtype | None, size: int
) -> None:
    x = torch.randint(0, 20, (size,)).to(dtype)
    w = None if weights is None else torch.randint(0, 9, (size,)).to(weights)
    (got,) = dispatcher.call(slim, "aten::bincount", x, None if w is None else Some(w), minlength)
    harness.assert_equal(got, torch.bincount(x, w, minlength))


def test_bincount_refuses_negative_numbers() -> None:
    with pytest.raises(harness.OpError, match=r"input\[1\] is -1, must not be negative"):
        dispatcher.call(slim, "aten::bincount", torch.tensor([1, -1]), None, 0)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [0, -1])
def test_median_of_a_dim(name: str, keepdim: bool, layout: str, dim: int) -> None:
    x = make((5, 13), torch.float32, layout)
    values, indices = dispatcher.call(slim, f"aten::{name}.dim", x, dim, keepdim, results=2)
    # PyTorch's result is wrong for an expanded tensor.
    expected = getattr(torch, name)(x.contiguous(), dim, keepdim)
    harness.assert_equal(values, expected.values, rtol=0, atol=0)
    index = indices if keepdim else indices.unsqueeze(dim)
    harness.assert_equal(x.gather(dim, index), expected.values.reshape(index.shape), rtol=0, atol=0)


def test_an_unknown_operator_is_named() -> None:
    for overload, shown in ((b"", "aten::frobnicate"), (b"out", "aten::frobnicate.out")):
        stack = (ctypes.c_uint64 * 1)(0)
        assert slim.library.aoti_torch_call_dispatcher(b"aten::frobnicate", overload, stack) != 0
        what = slim.library.torch_exception_get_what_without_backtrace().decode()
        assert what == f"operator {shown} is not in this program"


def test_lists_and_strings() -> None:
    library = slim.library
    handle, size, item = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_uint64()
    library.torch_new_list_reserve_size(ctypes.c_size_t(2), ctypes.byref(handle))
    for i in range(100):
        assert library.torch_list_push_back(handle, ctypes.c_uint64(i * i)) == 0
    assert library.torch_list_size(handle, ctypes.byref(size)) == 0
    assert size.value == 100
    assert library.torch_list_set_item(handle, ctypes.c_size_t(5), ctypes.c_uint64(7)) == 0
    for i in (5, 99):
        assert library.torch_list_get_item(handle, ctypes.c_size_t(i), ctypes.byref(item)) == 0
        assert item.value == (7 if i == 5 else i * i)
    assert library.torch_list_get_item(handle, ctypes.c_size_t(100), ctypes.byref(item)) != 0
    assert b"index 100 is out of range" in library.torch_exception_get_what_without_backtrace()
    assert library.torch_delete_list(handle) == 0
    text = b"bytes with \0 inside"
    library.torch_new_string_handle(text, ctypes.c_size_t(len(text)), ctypes.byref(handle))
    assert library.torch_string_length(handle, ctypes.byref(size)) == 0
    data = ctypes.c_void_p()
    assert library.torch_string_c_str(handle, ctypes.byref(data)) == 0
    assert ctypes.string_at(data.value or 0, size.value + 1) == text + b"\0"
    assert library.torch_delete_string(handle) == 0


COMPLEX = [torch.complex64, torch.complex128]
any_shapes = st.sampled_from([(), (7,), (5, 13), (3, 0), (2, 3, 17)])


@settings(max_examples=100)
@given(shape=any_shapes, dtype=st.sampled_from(COMPLEX), layout=st.sampled_from(LAYOUTS))
def test_complex_functions(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> None:
    z = make(shape, dtype, layout)
    w = make(shape[1:], dtype, layout, seed=1) + 0.25j
    for name in ("neg", "_conj", "conj_physical", "exp", "sqrt", "sin", "cos", "tanh", "sgn"):
        (got,) = dispatcher.call(slim, f"aten::{name}", z)
        expected = getattr(torch.ops.aten, name).default(z).resolve_conj()
        harness.assert_equal(got, expected, rtol=1e-4, atol=1e-5)
    for name in ("reciprocal", "log"):
        (got,) = dispatcher.call(slim, f"aten::{name}", w)
        harness.assert_equal(got, getattr(torch.ops.aten, name).default(w), rtol=1e-4, atol=1e-5)
    (got,) = dispatcher.call(slim, "aten::div.Tensor", z, w)
    harness.assert_equal(got, z / w, rtol=1e-4, atol=1e-5, strides=got.numel() > 1)
    (got,) = dispatcher.call(slim, "aten::complex", z.real, w.imag)
    harness.assert_equal(got, torch.complex(z.real, w.imag.expand_as(z)))
    (got,) = dispatcher.call(slim, "aten::where.self", z.real > 0, z, w)
    harness.assert_equal(got, torch.where(z.real > 0, z, w))
    for name in ("sum", "mean"):
        (got,) = dispatcher.call(slim, f"aten::{name}", z, None)
        if name == "sum" or z.numel():
            harness.assert_equal(got, getattr(torch, name)(z))
        overload = "sum.dim_IntList" if name == "sum" else "mean.dim"
        if z.dim() and z.numel():
            for keepdim in (True, False):
                dims = List([-1])
                (got,) = dispatcher.call(slim, f"aten::{overload}", z, Some(dims), keepdim, None)
                harness.assert_equal(got, getattr(torch, name)(z, -1, keepdim))


@settings(max_examples=100)
@given(
    shape=any_shapes,
    dtype=st.sampled_from(REAL + COMPLEX),
    layout=st.sampled_from(LAYOUTS),
    data=st.data(),
)
def test_layout(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout)

    def same(name: str, expected: torch.Tensor, *args: object, strides: bool = True) -> None:
        (got,) = dispatcher.call(slim, name, x, *args)
        harness.assert_equal(got, expected, rtol=0, atol=0, strides=strides and x.numel() > 1)

    same("aten::clone", x.clone(), None)
    same("aten::clone", x.clone(memory_format=torch.contiguous_format), Some(0))
    if dtype.is_complex:
        same(
            "aten::_to_copy",
            x.to(torch.complex128, copy=True),
            Some(torch.complex128),
            None,
            None,
            None,
            False,
            None,
        )
    dim = data.draw(st.integers(-x.dim() - 1, x.dim()))
    same("aten::unsqueeze", x.unsqueeze(dim), dim)
    sizes = (3, *x.shape)
    same("aten::expand", x.expand(sizes), List(sizes), False)
    same("aten::view", x.reshape(-1), List([x.numel()]))
    if x.dim():
        dims = sorted({0, x.dim() - 1})
        same("aten::flip", x.flip(dims), List(dims), strides=False)
        if x.shape[-1]:
            same("aten::select.int", x.select(-1, -1), -1, -1)


@settings(max_examples=100)
@given(
    shape=st.sampled_from([(5, 13), (3, 0), (2, 3, 17), (4, 4), (1, 7, 2)]),
    dtype=st.sampled_from(REAL + COMPLEX),
    layout=st.sampled_from(LAYOUTS),
    offset=st.integers(-6, 6),
    data=st.data(),
)
def test_diagonal(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, offset: int, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout)
    dims = data.draw(st.permutations(range(x.dim())))[:2]
    (got,) = dispatcher.call(slim, "aten::diagonal", x, offset, dims[0] - x.dim(), dims[1])
    expected = torch.diagonal(x, offset, *dims)
    harness.assert_equal(got, expected, rtol=0, atol=0, strides=True)


def test_as_strided() -> None:
    for dtype in REAL + COMPLEX:
        x = make((5, 13), dtype)[1:]
        for sizes, strides, offset in (
            ([2, 3], [1, 2], None),
            ([3, 2, 4], [13, 0, 1], 3),
            ([], [], 64),
            ([0, 4], [13, 1], 60),
        ):
            (got,) = dispatcher.call(
                slim,
                "aten::as_strided",
                x,
                List(sizes),
                List(strides),
                None if offset is None else Some(offset),
            )
            expected = torch.as_strided(x, sizes, strides, offset)
            harness.assert_equal(got, expected, rtol=0, atol=0, strides=True)


@settings(max_examples=100)
@given(
    shape=any_shapes,
    dtype=st.sampled_from(REAL + COMPLEX),
    other=st.sampled_from(REAL + COMPLEX),
    layout=st.sampled_from([layout for layout in LAYOUTS if layout != "expanded"]),
    fewer=st.booleans(),
)
def test_copy(
    shape: tuple[int, ...], dtype: torch.dtype, other: torch.dtype, layout: str, fewer: bool
) -> None:
    x = make(shape, dtype, layout)
    y = make(shape[1:] if fewer else shape, other, layout, seed=1, special=False)
    if other.is_complex and not dtype.is_complex:
        for name in ("copy", "copy_"):
            if x.numel():
                with pytest.raises(harness.OpError, match="can't convert complex"):
                    dispatcher.call(slim, f"aten::{name}", x, y, False)
        return
    expected = torch.ops.aten.copy.default(x, y)
    (got,) = dispatcher.call(slim, "aten::copy", x, y, False)
    harness.assert_equal(got, expected, rtol=0, atol=0, strides=x.numel() > 1)
    (same,) = dispatcher.call(slim, "aten::copy_", x, y, False)
    harness.assert_equal(same, expected, rtol=0, atol=0)
    harness.assert_equal(x, expected, rtol=0, atol=0)


@settings(max_examples=150)
@given(
    shape=st.sampled_from([(7,), (5, 13), (3, 0, 2), (2, 3, 17), (1, 7, 2)]),
    dtype=st.sampled_from(REAL + COMPLEX),
    layout=st.sampled_from(LAYOUTS),
    source=st.sampled_from(LAYOUTS),
    data=st.data(),
)
def test_scatter_into_a_part(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, source: str, data: st.DataObject
) -> None:
    x = make(shape, dtype, layout)
    before = x.clone()
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
    if x.size(dim):
        at = data.draw(st.integers(-x.size(dim), x.size(dim) - 1))
        y = make(tuple(x.select(dim, at).shape), dtype, source, seed=1)
        (got,) = dispatcher.call(slim, "aten::select_scatter", x, y, dim, at)
        expected = torch.select_scatter(x, y, dim, at)
        harness.assert_equal(got, expected, rtol=0, atol=0, strides=x.numel() > 1)
    place = st.one_of(st.none(), st.integers(-x.size(dim) - 2, x.size(dim) + 2))
    start, end, step = data.draw(place), data.draw(place), data.draw(st.integers(1, 3))
    part = torch.ops.aten.slice.Tensor(x, dim, start, end, step)
    y = make(tuple(part.shape), dtype, source, seed=2)
    bounds = [None if bound is None else Some(bound) for bound in (start, end)]
    (got,) = dispatcher.call(slim, "aten::slice_scatter", x, y, dim, *bounds, step)
    expected = torch.slice_scatter(x, y, dim, start, end, step)
    harness.assert_equal(got, expected, rtol=0, atol=0, strides=x.numel() > 1)
    harness.assert_equal(x, before, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "source", "arguments", "text"),
    [
        ("select_scatter", (3,), (1, 4), r"index 4 is out of range -4\.\.3 for dim 1 of size 4"),
        ("select_scatter", (3,), (2, 0), r"dim 2 is out of range -2\.\.1"),
        ("select_scatter", (3, 1), (1, 0), "select_scatter: src has 2 dims, must have 1"),
        ("select_scatter", (4,), (1, 0), "select_scatter: dim 0 of src is 4, must be 3"),
        ("slice_scatter", (3, 3), (1, None, Some(2), 1), "dim 1 of src is 3, must be 2"),
        ("slice_scatter", (3, 4), (1, None, None, 0), "step is 0, must be positive"),
    ],
)
def test_scatters_that_are_refused(
    name: str, source: tuple[int, ...], arguments: tuple[object, ...], text: str
) -> None:
    x, y = (torch.zeros(shape, dtype=torch.complex64) for shape in ((3, 4), source))
    with pytest.raises(harness.OpError, match=text):
        dispatcher.call(slim, f"aten::{name}", x, y, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("diagonal", (0, 1, -1), "dim1 and dim2 are the same dim, 1"),
        ("diagonal", (0, 0, 2), r"dim 2 is out of range -2\.\.1"),
        ("as_strided", (List([2]), List([1, 1]), None), "1 sizes and 2 strides are given"),
        ("as_strided", (List([2]), List([1]), Some(-1)), "storage offset is -1"),
        ("as_strided", (List([-2]), List([1]), None), "a size is -2, must not be negative"),
        ("as_strided", (List([2, 2]), List([1, -1]), None), "the stride of dim 1 is -1, must not"),
        ("as_strided", (List([2, 7]), List([3, 3]), None), "element 21 of the memory, which has"),
        ("as_strided", (List([2**62, 4]), List([0, 0]), None), "a tensor is too large"),
        ("as_strided", (List([0]), List([1]), Some(13)), "element 13 of the memory, which has 12"),
    ],
)
def test_views_that_are_refused(name: str, arguments: tuple[object, ...], text: str) -> None:
    x = torch.zeros(3, 4, dtype=torch.complex64)
    with pytest.raises(harness.OpError, match=text):
        dispatcher.call(slim, f"aten::{name}", x, *arguments)
