"""Antialiased resampling and grid sampling, against PyTorch."""

from __future__ import annotations

import ctypes
import itertools
import struct
from typing import Any

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

_DRAWN = settings(max_examples=60)
_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-6}
_MODES = ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]


@pytest.fixture(scope="module")
def slim() -> harness.Slim:
    return harness.load()


def close(actual: torch.Tensor, expected: torch.Tensor, *, strides: bool = True) -> None:
    tolerance = _TOLERANCE[expected.dtype]
    harness.assert_equal(actual, expected, rtol=tolerance, atol=tolerance, strides=strides)


def upsample(
    slim: harness.Slim, name: str, x: torch.Tensor, size: list[int], *others: Any
) -> torch.Tensor:
    """Calls through the dispatcher: its stack has tensors, lists and boxed optional numbers."""
    library = slim.library
    # The function owns its arguments, so they are borrowed here without a delete.
    items = ctypes.c_void_p()
    assert library.torch_new_list_reserve_size(ctypes.c_size_t(2), ctypes.byref(items)) == 0
    for value in size:
        assert library.torch_list_push_back(items, ctypes.c_uint64(value & (2**64 - 1))) == 0
    align_corners, *scales = others
    boxes = []
    for scale in scales:
        box = ctypes.POINTER(ctypes.c_uint64)()
        if scale is not None:
            assert library.torch_new_stable_ivalue(ctypes.byref(box)) == 0
            box[0] = struct.unpack("<Q", struct.pack("<d", scale))[0]
        boxes.append(ctypes.cast(box, ctypes.c_void_p).value or 0)
    tensor = slim.borrow(x)
    stack = (ctypes.c_uint64 * 5)(tensor.value or 0, items.value or 0, align_corners, *boxes)
    if library.aoti_torch_call_dispatcher(f"aten::{name}".encode(), b"", stack) != 0:
        raise harness.OpError(library.torch_exception_get_what_without_backtrace().decode())
    result = ctypes.c_void_p(stack[0])
    try:
        return slim.read(result)
    finally:
        library.aoti_torch_delete_tensor_object(result)


@_DRAWN
@given(data=st.data())
def test_upsample(slim: harness.Slim, data: st.DataObject) -> None:
    draw = data.draw
    # If results are one pixel wide, PyTorch 2.13 repeats the first row.
    sizes = [draw(st.integers(4, 23)) for _ in range(4)]
    torch.manual_seed(draw(st.integers(0, 99)))
    x = torch.randn(draw(st.integers(1, 2)), draw(st.integers(1, 4)), *sizes[:2])
    x = x.to(draw(st.sampled_from([torch.float32, torch.float64])))
    if draw(st.booleans()):
        x = x.contiguous(memory_format=torch.channels_last)
    if draw(st.booleans()):
        x = x[..., ::2]
    # With scales that lead to other sizes, PyTorch reads beyond its weights.
    scales = [draw(st.sampled_from([None, 0.5, 1.0, 2.5])) for _ in range(2)]
    size = [
        out if scale is None else max(int(own * scale), 2)
        for out, own, scale in zip(sizes[2:], x.shape[2:], scales)
    ]
    arguments: list[Any] = [draw(st.booleans()), *scales]
    for name in _MODES:
        expected = getattr(torch.ops.aten, name)(x, size, *arguments)
        close(upsample(slim, name, x, size, *arguments), expected)


@pytest.mark.parametrize("name", _MODES)
def test_upsample_of_bytes(slim: harness.Slim, name: str) -> None:
    x = torch.randint(0, 256, (2, 3, 31, 40), dtype=torch.uint8)
    for size in ([16, 13], [50, 64]):
        expected = getattr(torch.ops.aten, name)(x, size, False)
        actual = upsample(slim, name, x, size, False, None, None)
        harness.assert_equal(actual, expected, strides=True)


def test_upsample_errors(slim: harness.Slim) -> None:
    name = _MODES[0]
    with pytest.raises(harness.OpError, match="input has 3 dims"):
        upsample(slim, name, torch.ones(3, 4, 4), [2, 2], False, None, None)
    with pytest.raises(harness.OpError, match="output_size is 0"):
        upsample(slim, name, torch.ones(1, 3, 4, 4), [2, 0], False, None, None)
    with pytest.raises(harness.OpError, match="image is empty"):
        upsample(slim, name, torch.ones(1, 3, 0, 4), [2, 2], False, None, None)
    with pytest.raises(harness.OpError, match="int64 is not supported"):
        upsample(slim, name, torch.ones(1, 3, 4, 4).long(), [2, 2], False, None, None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_grid_sampler(slim: harness.Slim, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for size in ([4, 5, 6], [1, 3, 1]):
        x = torch.randn(2, 3, *size)
        # On a coarse grid, so that all dtypes agree on the neighbours of a point.
        grid = torch.randint(-20, 21, (2, 3, 4, 5, 3)) / 8 + 0.03125
        for layout, interpolation, padding, align in itertools.product(
            (False, True), (0, 1), (0, 1, 2), (False, True)
        ):
            volume = x.contiguous(memory_format=torch.channels_last_3d) if layout else x
            expected = torch.ops.aten.grid_sampler_3d(
                volume.double(), grid.double(), interpolation, padding, align
            )
            (actual,) = slim.call(
                "aoti_torch_cpu_grid_sampler_3d",
                volume.to(dtype), grid.to(dtype), interpolation, padding, align,
            )  # fmt: skip
            tolerance = 10 * _TOLERANCE[dtype]
            harness.assert_equal(
                actual.double(), expected, rtol=tolerance, atol=tolerance, strides=True
            )


def test_grid_sampler_of_strange_points(slim: harness.Slim) -> None:
    x = torch.randn(1, 2, 3, 4, 5)
    numbers = [torch.nan, torch.inf, -torch.inf, 1e30, -1e30, 0.5]
    points = torch.tensor(list(itertools.product(numbers, repeat=3))).reshape(1, 6, 6, 6, 3)
    for interpolation in (0, 1):
        for padding in (0, 1):
            arguments = (x, points, interpolation, padding, False)
            expected = torch.ops.aten.grid_sampler_3d(*arguments)
            (actual,) = slim.call("aoti_torch_cpu_grid_sampler_3d", *arguments)
            close(actual, expected)
        (actual,) = slim.call("aoti_torch_cpu_grid_sampler_3d", x, points, interpolation, 2, False)
        assert actual.shape == expected.shape


@pytest.mark.parametrize(
    ("x", "grid", "modes", "message"),
    [
        ((1, 2, 3, 4), (1, 2, 2, 2, 3), (0, 0), "4 and 5 dims"),
        ((1, 2, 3, 4, 5), (1, 2, 2, 2, 2), (0, 0), "have 2 numbers"),
        ((1, 2, 3, 4, 5), (2, 2, 2, 2, 3), (0, 0), "a batch of 1"),
        ((1, 2, 3, 0, 5), (1, 2, 2, 2, 3), (0, 0), "volume is empty"),
        ((1, 2, 3, 4, 5), (1, 2, 2, 2, 3), (2, 0), "interpolation mode 2"),
        ((1, 2, 3, 4, 5), (1, 2, 2, 2, 3), (0, 3), "padding mode 3"),
    ],
)
def test_grid_sampler_errors(
    slim: harness.Slim,
    x: tuple[int, ...],
    grid: tuple[int, ...],
    modes: tuple[int, int],
    message: str,
) -> None:
    with pytest.raises(harness.OpError, match=message):
        slim.call("aoti_torch_cpu_grid_sampler_3d", torch.ones(x), torch.ones(grid), *modes, False)
