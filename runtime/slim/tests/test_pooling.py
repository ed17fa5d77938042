"""Pooling operators against PyTorch: values, indices, layouts, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

_DRAWN = settings(max_examples=60)
_FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
_TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_LAYOUTS = ["contiguous", "last", "sliced", "transposed", "expanded"]


@pytest.fixture(scope="module")
def slim() -> harness.Slim:
    return harness.load()


def as_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "last":
        order = [0, *range(2, tensor.dim()), 1]
        back = [0, tensor.dim() - 1, *range(1, tensor.dim() - 1)]
        return tensor.permute(order).contiguous().permute(back)
    if layout == "sliced":
        wide = torch.zeros([s * 2 + 1 for s in tensor.shape], dtype=tensor.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in tensor.shape)]
        return view.copy_(tensor)
    if layout == "transposed":
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "expanded":
        return tensor[..., :1].expand_as(tensor)
    return tensor


def values(shape: list[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Integers, so that maxima occur several times."""
    return torch.randint(0 if dtype == torch.uint8 else -9, 9, shape).to(dtype)


def check(
    slim: harness.Slim, name: str, operator: Callable[..., Any], x: torch.Tensor, *args: Any
) -> None:
    expected = operator(x, *args)
    fake = FakeTensorMode()
    faked = [fake.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
    predicted = operator(fake.from_tensor(x), *faked)
    actual = slim.call(f"aoti_torch_cpu_{name}", x, *args)
    if isinstance(expected, torch.Tensor):
        expected, predicted = (expected,), (predicted,)
    assert len(actual) == len(expected)
    for a, e, p in zip(actual, expected, predicted):
        tolerance = _TOLERANCE.get(a.dtype, 0 if not a.is_floating_point() else 1e-6)
        harness.assert_equal(a, e, rtol=tolerance, atol=tolerance)
        if a.numel():
            assert a.stride() == p.stride()


def layout_of(draw: Any, dims: int, shape: list[int]) -> str:
    # PyTorch's operators fail for "last" without a batch.
    batched = len(shape) == dims + 2
    return str(draw(st.sampled_from(_LAYOUTS if batched else [_LAYOUTS[0], *_LAYOUTS[2:]])))


def shape_of(draw: Any, dims: int, least: int) -> list[int]:
    batch = [draw(st.integers(0, 3))] if draw(st.booleans()) else []
    channels = draw(st.sampled_from([1, 2, 5, 33]))
    return [*batch, channels, *(least + draw(st.integers(0, 9)) for _ in range(dims))]


@_DRAWN
@given(data=st.data())
def test_max(slim: harness.Slim, data: st.DataObject) -> None:
    draw = data.draw
    dims = draw(st.integers(2, 3))
    kernel = [draw(st.integers(1, 4)) for _ in range(dims)]
    dilation = [draw(st.integers(1, 3)) for _ in range(dims)]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    stride = draw(st.sampled_from([[], [1], [2] * dims, [3] * dims]))
    shape = shape_of(draw, dims, max((k - 1) * d for k, d in zip(kernel, dilation)) + 1)
    dtype = draw(st.sampled_from([*_FLOATS, torch.int64, torch.int32, torch.uint8, torch.int8]))
    x = as_layout(values(shape, dtype), layout_of(draw, dims, shape))
    operator = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices")
    name = f"max_pool{dims}d_with_indices"
    check(slim, name, operator, x, kernel, stride, padding, dilation, draw(st.booleans()))


@_DRAWN
@given(data=st.data())
def test_average(slim: harness.Slim, data: st.DataObject) -> None:
    draw = data.draw
    dims = draw(st.integers(2, 3))
    kernel = [draw(st.integers(1, 4)) for _ in range(dims)]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    stride = draw(st.sampled_from([[], [1], [2] * dims, [3] * dims]))
    dtype = draw(st.sampled_from([*(_FLOATS if dims == 2 else _FLOATS[:2]), torch.int64]))
    shape = shape_of(draw, dims, max(kernel))
    x = as_layout(values(shape, dtype), layout_of(draw, dims, shape))
    divisor = draw(st.sampled_from([None, 3, -2]))
    args = [kernel, stride, padding, draw(st.booleans()), draw(st.booleans()), divisor]
    check(slim, f"avg_pool{dims}d", getattr(torch.ops.aten, f"avg_pool{dims}d"), x, *args)


@_DRAWN
@given(data=st.data())
def test_adaptive(slim: harness.Slim, data: st.DataObject) -> None:
    draw = data.draw
    dims = draw(st.integers(2, 3))
    size = [draw(st.integers(0, 12)) for _ in range(dims)]
    dtype = draw(st.sampled_from(_FLOATS))
    shape = shape_of(draw, dims, 1)
    x = as_layout(values(shape, dtype), layout_of(draw, dims, shape))
    for name in (f"_adaptive_avg_pool{dims}d", f"adaptive_max_pool{dims}d"):
        check(slim, name, getattr(torch.ops.aten, name), x, size)


@_DRAWN
@given(data=st.data())
def test_fractional(slim: harness.Slim, data: st.DataObject) -> None:
    draw = data.draw
    dims = draw(st.integers(2, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    shape = shape_of(draw, dims, max(kernel) + 1)
    size = [draw(st.integers(1, s - k)) for s, k in zip(shape[-dims:], kernel)]
    dtype = draw(st.sampled_from(_FLOATS))
    x = as_layout(values(shape, dtype), layout_of(draw, dims, shape))
    batch = shape[0] if len(shape) == dims + 2 else 1
    samples = torch.rand(batch, shape[-dims - 1], dims).to(dtype)
    samples = as_layout(samples.clamp(max=0.98), draw(st.sampled_from(["contiguous", "sliced"])))
    name = f"fractional_max_pool{dims}d"
    check(slim, name, getattr(torch.ops.aten, name), x, kernel, size, samples)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("layout", _LAYOUTS[:4])
@pytest.mark.parametrize("dtype", _FLOATS)
def test_unpool(slim: harness.Slim, dims: int, layout: str, dtype: torch.dtype) -> None:
    for batch in ([], [2], [0]):
        if not batch and layout == "last":
            continue
        full = torch.randn([*batch, 5, *[8] * dims]).to(dtype)
        kernel = [2] * dims
        pool = getattr(torch.ops.aten, f"max_pool{dims}d_with_indices")
        pooled, indices = pool(full, kernel)
        args: list[Any] = [as_layout(indices, layout), [8] * dims]
        if dims == 3:
            args += [kernel, [0] * dims]
        name = f"max_unpool{dims}d"
        check(slim, name, getattr(torch.ops.aten, name), as_layout(pooled, layout), *args)


@pytest.mark.parametrize("layout", ["contiguous", "last"])
@pytest.mark.parametrize("dtype", _FLOATS)
def test_nan_and_infinity(slim: harness.Slim, layout: str, dtype: torch.dtype) -> None:
    x = torch.full((1, 3, 6, 6), -torch.inf, dtype=dtype)
    x[0, 0, 1, 1] = x[0, 0, 0, 1] = x[0, 1, 2, 3] = torch.nan
    x[0, 1, 3, 3] = torch.inf
    x = as_layout(x, layout)
    aten = torch.ops.aten
    window = [[3, 3], [2, 2], [1, 1], [1, 1], False]
    check(slim, "max_pool2d_with_indices", aten.max_pool2d_with_indices, x, *window)
    check(slim, "adaptive_max_pool2d", aten.adaptive_max_pool2d, x, [3, 2])
    check(slim, "_adaptive_avg_pool2d", aten._adaptive_avg_pool2d, x, [3, 2])
    samples = torch.full((1, 3, 2), 0.5, dtype=dtype)
    check(slim, "fractional_max_pool2d", aten.fractional_max_pool2d, x, [2, 2], [3, 3], samples)


@pytest.mark.parametrize(
    ("name", "shape", "args", "message"),
    [
        ("max_pool2d_with_indices", (4, 4), [[2], [], [0], [1], False], "input has 2 dims"),
        ("max_pool2d_with_indices", (2, 0, 4, 4), [[2], [], [0], [1], False], "no elements"),
        ("max_pool2d_with_indices", (1, 4, 4), [[5], [], [0], [1], False], "covers 5 positions"),
        ("max_pool2d_with_indices", (1, 4, 4), [[2], [], [2], [1], False], "padding is 2"),
        ("max_pool2d_with_indices", (1, 4, 4), [[2], [0], [0], [1], False], "stride is 0"),
        ("max_pool2d_with_indices", (1, 4, 4), [[0], [1], [0], [1], False], "kernel_size is 0"),
        ("max_pool2d_with_indices", (1, 4, 4), [[2] * 3, [], [0], [1], False], "has 3 numbers"),
        ("max_pool2d_with_indices", (1, 4, 4), [[2], [], [0], [2**62], False], "covers"),
        ("max_pool3d_with_indices", (1, 4, 4, 4), [[5], [], [0], [1], False], "covers 5"),
        ("avg_pool2d", (1, 4, 4), [[2], [], [0], False, True, 0], "divisor_override is 0"),
        ("avg_pool3d", (1, 4, 4, 4), [[2], [], [-1], False, True, None], "padding is -1"),
        ("_adaptive_avg_pool2d", (1, 4, 4), [[-1, 1]], "output_size is -1"),
        ("adaptive_max_pool2d", (2, 0, 4, 4), [[1, 1]], "no elements"),
        ("adaptive_max_pool3d", (4, 4), [[1, 1, 1]], "input has 2 dims"),
    ],
)
def test_errors(
    slim: harness.Slim, name: str, shape: tuple[int, ...], args: list[Any], message: str
) -> None:
    with pytest.raises(harness.OpError, match=message):
        slim.call(f"aoti_torch_cpu_{name}", torch.ones(shape), *args)


@pytest.mark.parametrize("index", [-1, 36, 2**62])
def test_unpool_checks_indices(slim: harness.Slim, index: int) -> None:
    indices = torch.tensor([[[0, 1], [2, index]]])
    with pytest.raises(harness.OpError, match=f"index {index} is out of range 0..35"):
        slim.call("aoti_torch_cpu_max_unpool2d", torch.ones(1, 2, 2), indices, [6, 6])


def test_fractional_checks_samples(slim: harness.Slim) -> None:
    x = torch.ones(1, 4, 6, 6)
    name = "aoti_torch_cpu_fractional_max_pool2d"
    with pytest.raises(harness.OpError, match="random_samples must be of size"):
        slim.call(name, x, [2, 2], [3, 3], torch.rand(1, 3, 2))
    with pytest.raises(harness.OpError, match=r"must be in 0\.\.1"):
        slim.call(name, x, [2, 2], [3, 3], torch.full((1, 4, 2), 99.0))
    with pytest.raises(harness.OpError, match=r"must be in 0\.\.1"):
        slim.call(name, x, [2, 2], [3, 3], torch.full((1, 4, 2), torch.nan))
    with pytest.raises(harness.OpError, match="do not fit"):
        slim.call(name, x, [2, 2], [6, 6], torch.rand(1, 4, 2))
