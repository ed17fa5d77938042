"""aten::convolution against PyTorch: values, strides (as PyTorch predicts them), errors."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cpu_levels
import harness
import pytest
import torch
from aoti_driver.packing import convolution
from aoti_driver.program import convolutions
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

_DRAWN = settings(max_examples=60)
_TOLERANCE = {
    torch.float32: 2e-5,
    torch.float64: 1e-12,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}


@pytest.fixture(scope="module")
def slim() -> Iterator[harness.Slim]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield harness.load()
    torch.set_num_threads(threads)


@pytest.fixture(params=cpu_levels.known())
def level(slim: harness.Slim, request: pytest.FixtureRequest) -> Iterator[int]:
    with cpu_levels.chosen(slim, request.param):
        yield request.param


@dataclass
class Conv:
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool = False
    output_padding: list[int] | None = None
    groups: int = 1

    def arguments(self) -> list[object]:
        extra = self.output_padding or [0] * len(self.stride)
        return [self.stride, self.padding, self.dilation, self.transposed, extra, self.groups]


def plain(dims: int, **others: object) -> Conv:
    base: dict[str, object] = {"stride": [1] * dims, "padding": [0] * dims, "dilation": [1] * dims}
    return Conv(**(base | others))  # type: ignore[arg-type]


def as_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values: "contiguous", "last" (channels), "sliced", "expanded" (other values)."""
    if layout == "last":
        order = [0, *range(2, tensor.dim()), 1]
        back = [0, tensor.dim() - 1, *range(1, tensor.dim() - 1)]
        return tensor.permute(order).contiguous().permute(back)
    if layout == "sliced":
        wide = torch.zeros([s * 2 + 1 for s in tensor.shape], dtype=tensor.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in tensor.shape)]
        return view.copy_(tensor)
    if layout == "expanded":
        return tensor[:, :1].expand_as(tensor)
    return tensor


def describe(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype


@functools.cache
def predicted_strides(x: Any, w: Any, bias: bool, arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """The layout for which Inductor generates code.

    With one thread, PyTorch chooses other kernels, and so other layouts, for small 3d filters.
    """
    torch.set_num_threads(2)
    with convolutions.layouts_of_every_host(), FakeTensorMode():
        tensors = [
            torch.empty_strided(shape, stride, dtype=dtype) for shape, stride, dtype in (x, w)
        ]
        channels = w[0][1] * arguments[5] if arguments[3] else w[0][0]
        b = torch.empty(channels, dtype=w[2]) if bias else None
        lists = [list(a) if isinstance(a, tuple) else a for a in arguments]
        strides = tuple(torch.ops.aten.convolution(*tensors, b, *lists).stride())
    torch.set_num_threads(1)
    return strides


def check(
    slim: harness.Slim,
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor | None,
    conv: Conv,
) -> None:
    expected = torch.ops.aten.convolution(x, w, b, *conv.arguments())
    arguments = tuple(tuple(a) if isinstance(a, list) else a for a in conv.arguments())
    predicted = predicted_strides(describe(x), describe(w), b is not None, arguments)
    (actual,) = slim.call("aoti_torch_cpu_convolution", x, w, b, *conv.arguments())
    assert actual.stride() == predicted
    slim.library.aoti_slim_test_set_threads(2)
    (shared,) = slim.call("aoti_torch_cpu_convolution", x, w, b, *conv.arguments())
    slim.library.aoti_slim_test_set_threads(1)
    harness.assert_equal(shared, actual, rtol=0, atol=0)
    tolerance = _TOLERANCE.get(x.dtype, 0)
    exact = expected
    if x.dtype in (torch.float16, torch.bfloat16):
        wide = [t if t is None else t.double() for t in (x, w, b)]
        exact = torch.ops.aten.convolution(*wide, *conv.arguments()).to(x.dtype)
    finite = exact[exact.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() and exact.is_floating_point() else 1.0
    harness.assert_equal(actual, exact, rtol=tolerance, atol=tolerance * max(scale, 1e-3))


def make(shape: list[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float32).to(dtype)
    return torch.randint(-9, 9, shape).to(dtype)


# batch, input channels, size, output channels, kernel, stride, padding, dilation, groups
_LAYERS = [
    (1, 64, [14, 14], 64, [3, 3], 1, 1, 1, 1),
    (2, 3, [33, 31], 32, [7, 7], 2, 3, 1, 1),
    (1, 40, [7, 9], 70, [1, 1], 1, 0, 1, 1),
    (2, 40, [7, 9], 33, [1, 1], 2, 0, 1, 1),
    (1, 24, [9, 9], 17, [1, 1], 1, 2, 1, 1),
    (1, 16, [13, 11], 48, [3, 5], 2, [1, 2], [2, 1], 1),
    (1, 5, [13, 11], 6, [3, 3], 1, 9, 3, 1),
    # The only results see nothing but zeros.
    (1, 5, [4, 1], 6, [2, 2], [1, 9], [0, 3], 1, 1),
    (2, 48, [4, 2], 6, [2, 2], [1, 9], [0, 3], 1, 3),
    (2, 24, [9, 10], 48, [3, 3], 1, 1, 1, 4),
    (2, 35, [9, 10], 35, [3, 3], 1, 1, 1, 35),
    (1, 32, [11, 12], 32, [3, 3], 2, 1, 1, 32),
    (1, 40, [15, 15], 40, [5, 5], 1, 2, 1, 40),
    (1, 33, [15, 16], 33, [5, 5], 2, 2, 1, 33),
    (1, 16, [15, 16], 16, [7, 7], 1, 3, 1, 16),
    (1, 16, [15, 16], 16, [3, 3], 1, 2, 2, 16),
    (1, 16, [4, 2], 16, [3, 3], 1, 5, 1, 16),
    (2, 8, [15, 16], 24, [3, 3], 1, 1, 1, 8),
    (1, 20, [15, 16], 20, [7, 7], 1, 3, 1, 20),
    (1, 40, [15, 33], 40, [9, 9], 1, 4, 1, 40),
    (1, 16, [9, 5], 16, [9, 9], 1, 4, 1, 16),
    (1, 20, [12, 20], 20, [9, 9], 2, 4, 1, 20),
    (1, 16, [3, 14], 16, [1, 11], 1, [0, 5], 1, 16),
    (2, 33, [40], 33, [11], 1, 5, 1, 33),
    (1, 8, [40], 8, [9], 1, 4, 1, 8),
    (1, 36, [15, 16], 36, [3, 3], 1, 1, 1, 9),
    (1, 40, [9, 8], 40, [3, 3], 2, 1, 2, 20),
    (1, 48, [9, 8], 48, [3, 5], 1, [1, 2], 1, 6),
    (1, 6, [9, 8], 6, [3, 3], 1, 1, 1, 2),
    (1, 1, [400], 64, [10], 5, 0, 1, 1),
    (2, 48, [101], 64, [3], 2, 0, 1, 1),
    (2, 32, [50], 32, [15], 1, 7, 1, 32),
    (1, 20, [50], 30, [3], 1, 4, 4, 1),
    (1, 6, [5, 6, 7], 20, [3, 3, 3], 1, 1, 1, 1),
    (1, 8, [5, 6, 7], 8, [3, 3, 3], [1, 2, 1], 1, [1, 1, 2], 8),
    (2, 6, [5, 6, 7], 20, [1, 1, 1], 1, 0, 1, 1),
    (1, 3, [6, 32, 32], 16, [2, 16, 16], [2, 16, 16], 0, 1, 1),
    (1, 1, [1, 1], 1, [1, 1], 1, 0, 1, 1),
]


def spread(value: int | list[int], dims: int) -> list[int]:
    return value if isinstance(value, list) else [value] * dims


@pytest.mark.parametrize("layer", _LAYERS, ids=str)
@pytest.mark.parametrize("layouts", [("contiguous",) * 2, ("last",) * 2, ("last", "contiguous")])
def test_layers(slim: harness.Slim, level: int, layer: tuple, layouts: tuple[str, str]) -> None:  # type: ignore[type-arg]
    n, c, size, o, kernel, stride, padding, dilation, groups = layer
    torch.manual_seed(0)
    x = as_layout(make([n, c, *size]), layouts[0])
    w = as_layout(make([o, c // groups, *kernel]), layouts[1])
    dims = len(size)
    conv = Conv(spread(stride, dims), spread(padding, dims), spread(dilation, dims), groups=groups)
    check(slim, x, w, make([o]) if layouts[1] == "last" else None, conv)


@pytest.mark.parametrize("layout", ["contiguous", "last"])
@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "extra"),
    [
        (1, 0, 1, 0),
        (2, 1, 1, 1),
        (2, 0, 1, 0),
        (3, 1, 2, 2),
        (2, 5, 1, 0),
        (4, 0, 1, 3),
        (1, 1, 3, 2),
    ],
)
def test_transposed(
    slim: harness.Slim,
    level: int,
    layout: str,
    groups: int,
    stride: int,
    padding: int,
    dilation: int,
    extra: int,
) -> None:
    torch.manual_seed(0)
    for size, kernel in (([9], [3]), ([6, 5], [4, 3]), ([4, 3, 4], [3, 4, 2])):
        dims = len(size)
        x = as_layout(make([2, 16, *size]), layout)
        w = as_layout(make([16, 24 // groups, *kernel]), layout)
        conv = Conv(
            [stride] * dims, [padding] * dims, [dilation] * dims, True, [extra] * dims, groups
        )
        if (
            min(
                (s - 1) * stride - 2 * padding + dilation * (k - 1) + extra + 1
                for s, k in zip(size, kernel)
            )
            <= 0
        ):
            continue
        check(slim, x, w, make([24]), conv)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layouts", list(itertools.product(["contiguous", "last"], repeat=2)))
def test_dtypes(slim: harness.Slim, dtype: torch.dtype, layouts: tuple[str, str]) -> None:
    torch.manual_seed(0)
    for dims, transposed, kernel in itertools.product((1, 2, 3), (False, True), (1, 3)):
        x = as_layout(make([2, 12, *[5, 7, 6][:dims]], dtype), layouts[0])
        w = as_layout(make([12, 12, *[kernel] * dims], dtype), layouts[1])
        conv = plain(dims, transposed=transposed, stride=[2] * dims)
        check(slim, x, w, make([12], dtype), conv)


@pytest.mark.parametrize("layout", ["contiguous", "last", "sliced"])
def test_float16_in_parts(slim: harness.Slim, level: int, layout: str) -> None:
    """Of images of more numbers than are widened at a time, some rows are."""
    x = as_layout(make([2, 12, 190, 241], torch.float16), layout)
    w = make([6, 12, 3, 5], torch.float16)
    conv = plain(2, stride=[2, 1], padding=[2, 1], dilation=[1, 2])
    check(slim, x, w, make([6], torch.float16), conv)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers(slim: harness.Slim, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, w, b = make([2, 6, 7, 8], dtype), make([4, 3, 3, 2], dtype), make([4], dtype)
    check(slim, x, w, b, plain(2, groups=2, padding=[1, 1]))


class PackedSlim(harness.Slim):
    """Passes weights to the shim in packed form only: their plain memory has NaN."""

    kind: bytes
    weight: torch.Tensor
    packed: torch.Tensor

    def pack(self, weight: torch.Tensor, conv: Conv) -> torch.Tensor:
        kind = convolution.kind_of(weight, conv.groups, conv.transposed)
        assert kind is not None
        self.kind = kind.encode()
        self.packed = convolution.pack(kind, weight, conv.groups)
        self.weight = torch.full_like(weight, torch.nan)
        return self.weight

    def borrow(self, tensor: torch.Tensor) -> ctypes.c_void_p:
        handle = super().borrow(tensor)
        if tensor is self.weight:
            data, size = ctypes.c_void_p(self.packed.data_ptr()), self.packed.numel()
            assert (
                self.library.aoti_slim_set_packed(handle, self.kind, data, ctypes.c_size_t(size))
                == 0
            )
        return handle


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", ["contiguous", "last"])
@pytest.mark.parametrize(
    ("shape", "kernel", "transposed", "groups"),
    [
        ([40, 24], [3, 3], False, 1),
        ([40, 24], [3], True, 1),
        ([24, 12], [3, 2], False, 2),
        ([24, 5], [2, 3, 2], True, 3),
        ([37, 1], [3, 5], False, 37),
        ([36, 4], [3, 3], False, 9),
        ([48, 16], [3, 3], False, 3),
    ],
)
def test_packed_weights(
    slim: harness.Slim,
    dtype: torch.dtype,
    layout: str,
    shape: list[int],
    kernel: list[int],
    transposed: bool,
    groups: int,
) -> None:
    packing = PackedSlim(os.environ["AOTI_SLIM_LIBRARY"])
    dims = len(kernel)
    conv = plain(dims, stride=[2] * dims, transposed=transposed, groups=groups)
    weight = as_layout(make([*shape, *kernel], dtype), layout)
    channels = shape[0] if transposed else shape[1] * groups
    x, b = make([2, channels, *[7] * dims], dtype), make([shape[1] * groups], dtype)
    b = b if transposed else make([shape[0]], dtype)
    name = "aoti_torch_cpu_convolution"
    (expected,) = slim.call(name, x, weight, b, *conv.arguments())
    (actual,) = packing.call(name, x, packing.pack(weight, conv), b, *conv.arguments())
    harness.assert_equal(actual, expected, rtol=0, atol=0, strides=True)
    packing.packed = packing.packed[:-4]
    with pytest.raises(harness.OpError, match="packed weight has"):
        packing.call(name, x, packing.weight, b, *conv.arguments())


@_DRAWN
@given(data=st.data())
def test_any(slim: harness.Slim, data: st.DataObject) -> None:
    draw = data.draw
    dims = draw(st.integers(1, 3))
    transposed = draw(st.booleans())
    groups = draw(st.sampled_from([1, 1, 2, 3, 5, 16]))
    small = st.integers(1, 40 if groups < 3 else 3)
    ic, oc = draw(small), draw(small)
    if draw(st.booleans()) and groups > 2:
        ic = oc = 1
    kernel = [draw(st.integers(1, 4)) for _ in range(dims)]
    conv = Conv(
        [draw(st.integers(1, 3)) for _ in range(dims)],
        [draw(st.integers(0, 3)) for _ in range(dims)],
        [draw(st.integers(1, 3)) for _ in range(dims)],
        transposed,
        groups=groups,
    )
    size = []
    for d in range(dims):
        reach = (kernel[d] - 1) * conv.dilation[d] + 1 - 2 * conv.padding[d]
        least = 1 + max(2 * conv.padding[d], 0) if transposed else max(reach, 1)
        size.append(least + draw(st.integers(0, 12)))
    if transposed:
        conv.output_padding = [
            draw(st.integers(0, max(s, d) - 1)) for s, d in zip(conv.stride, conv.dilation)
        ]
    torch.manual_seed(draw(st.integers(0, 99)))
    layouts = st.sampled_from(["contiguous", "last", "sliced", "expanded"])
    x = as_layout(make([draw(st.integers(1, 3)), ic * groups, *size]), draw(layouts))
    shape = [ic * groups, oc] if transposed else [oc * groups, ic]
    w = as_layout(make([*shape, *kernel]), draw(layouts))
    b = make([2 * oc * groups])[::2] if draw(st.booleans()) else None
    slim.library.aoti_slim_set_cpu_level(draw(st.sampled_from(cpu_levels.known())))
    try:
        check(slim, x, w, b, conv)
    finally:
        slim.library.aoti_slim_set_cpu_level(-1)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3])
def test_layouts_where_sizes_are_one(slim: harness.Slim, dims: int, kernel: int) -> None:
    """If a size is 1, the strides alone do not determine the layout of a tensor."""
    for n, c, size, o in itertools.product((1, 2), (1, 4), (kernel, kernel + 1), (1, 4)):
        for layouts in itertools.product(["contiguous", "last", "sliced"], repeat=2):
            x = as_layout(make([n, c, *[size] * dims]), layouts[0])
            w = as_layout(make([o, c, *[kernel] * dims]), layouts[1])
            check(slim, x, w, None, plain(dims))


@pytest.mark.parametrize("shape", [[16, 4, 2, 3, 3], [1, 8, 32, 80, 2], [1, 8, 32, 81, 2]], ids=str)
def test_layouts_by_size_in_3d(slim: harness.Slim, shape: list[int]) -> None:
    for kernel in ([1, 1, 1], [2, 3, 2]):
        check(slim, as_layout(make(shape), "last"), make([4, shape[1], *kernel]), None, plain(3))


def test_nan_and_infinity(slim: harness.Slim, level: int) -> None:
    for c, groups in ((3, 1), (32, 1), (32, 32)):
        x = torch.ones(1, c, 6, 6)
        x[0, 0, 1, 1], x[0, 1, 4, 4], x[0, 2, 5, 0] = torch.nan, torch.inf, -torch.inf
        w = torch.ones(32, c // groups, 3, 3)
        for layout in ("contiguous", "last"):
            conv = plain(2, padding=[1, 1], groups=groups)
            check(slim, as_layout(x, layout), w, None, conv)


@pytest.mark.parametrize(
    ("channels", "kernel", "groups"),
    [(16, [1, 1], 1), (64, [3, 3], 1), (3, [5, 5], 1), (32, [3, 3], 32), (32, [3, 3], 4)],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_subnormal_numbers_are_zeros(
    slim: harness.Slim, level: int, channels: int, kernel: list[int], groups: int, transposed: bool
) -> None:
    """On x86-64, where Intel's CPUs take a hundred times as long for a product with one."""
    conv = plain(2, groups=groups, transposed=transposed)
    tiny, large = torch.full((1, channels, 20, 20), 2.0**-130), torch.full((1,), 2.0**90)
    slim.library.aoti_slim_test_set_threads(2)
    for x in (tiny, torch.full_like(tiny, 2.0**90)):
        w = (large if x is tiny else tiny.flatten()[:1]).expand(
            channels, channels // groups, *kernel
        )
        (y,) = slim.call("aoti_torch_cpu_convolution", x, w.contiguous(), None, *conv.arguments())
        assert bool((y == 0).all()) == (platform.machine() == "x86_64")
        assert float((tiny[0, 0, 0, 0] * 2.0**90).item()) == 2.0**-40  # as before for the caller
    slim.library.aoti_slim_test_set_threads(1)


@pytest.mark.parametrize(
    ("x", "w"), [((0, 3, 8, 8), (4, 3, 3, 3)), ((2, 0, 8, 8), (4, 0, 3, 3)), ((0, 3, 8), (4, 3, 3))]
)
def test_empty(slim: harness.Slim, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    conv = plain(len(x) - 2)
    for layout in ("contiguous", "last"):
        expected = torch.ops.aten.convolution(
            as_layout(torch.ones(x), layout), torch.ones(w), None, *conv.arguments()
        )
        (actual,) = slim.call(
            "aoti_torch_cpu_convolution",
            as_layout(torch.ones(x), layout),
            torch.ones(w),
            None,
            *conv.arguments(),
        )
        harness.assert_equal(actual, expected, strides=True)


def test_one_number_for_all_dims(slim: harness.Slim) -> None:
    x, w = make([1, 3, 8, 9]), make([4, 3, 3, 3])
    (actual,) = slim.call("aoti_torch_cpu_convolution", x, w, None, [2], [1], [1], False, [0], 1)
    harness.assert_equal(actual, torch.conv2d(x, w, None, 2, 1), rtol=1e-5, atol=1e-5)


_X, _W = (2, 4, 8, 8), (4, 4, 3, 3)


@pytest.mark.parametrize(
    ("x", "w", "b", "conv", "message"),
    [
        ((4, 8, 8), _W, None, {}, "input has 3 dims"),
        ((4, 8), (4, 4), None, {}, "weight has 2 dims"),
        ((2, 5, 8, 8), _W, None, {}, "must have 4 channels"),
        ((2, 4, 2, 8), _W, None, {}, "the filter covers 3 pixels, more than the 2"),
        (_X, (0, 4, 3, 3), None, {}, "has no elements"),
        (_X, _W, (5,), {}, r"bias of size \[5\] must be of size \[4\]"),
        (_X, _W, (4, 1), {}, "bias of size"),
        (_X, _W, None, {"stride": [0, 1]}, "stride is 0"),
        (_X, _W, None, {"stride": [1, 1, 1]}, "stride has 3 numbers, must have 2"),
        (_X, _W, None, {"padding": [-1, 1]}, "padding is -1"),
        (_X, _W, None, {"dilation": [1, 0]}, "dilation is 0"),
        (_X, _W, None, {"dilation": [1, 2**62]}, "dilation or padding is too large"),
        (_X, _W, None, {"groups": 3}, "multiple of groups = 3"),
        (_X, _W, None, {"groups": 0}, "groups is 0"),
        (_X, _W, None, {"transposed": True, "output_padding": [1, 0]}, "output_padding is 1"),
        (_X, _W, None, {"transposed": True, "padding": [9, 9]}, "would not be positive"),
    ],
)
def test_errors(
    slim: harness.Slim,
    x: tuple[int, ...],
    w: tuple[int, ...],
    b: tuple[int, ...] | None,
    conv: dict[str, object],
    message: str,
) -> None:
    bias = None if b is None else torch.ones(b)
    with pytest.raises(harness.OpError, match=message):
        slim.call(
            "aoti_torch_cpu_convolution",
            torch.ones(x),
            torch.ones(w),
            bias,
            *plain(2, **conv).arguments(),
        )


def test_errors_of_dtypes(slim: harness.Slim) -> None:
    x, w, arguments = torch.ones(_X), torch.ones(_W), plain(2).arguments()
    with pytest.raises(harness.OpError, match="weight is float64"):
        slim.call("aoti_torch_cpu_convolution", x, w.double(), None, *arguments)
    with pytest.raises(harness.OpError, match="bias is float64"):
        slim.call("aoti_torch_cpu_convolution", x, w, torch.ones(4).double(), *arguments)
    with pytest.raises(harness.OpError, match="bool"):
        slim.call("aoti_torch_cpu_convolution", x.bool(), w.bool(), None, *arguments)


@pytest.mark.parametrize(
    ("channels", "stride", "groups"), [(1024, 1, 1), (256, 4, 2), (2048, 2, 1)]
)
@pytest.mark.parametrize("padding", [0, 1])
def test_pixels_4096_bytes_apart(
    slim: harness.Slim, level: int, channels: int, stride: int, groups: int, padding: int
) -> None:
    """Which are all in one set of a cache, so that their rows are copied."""
    x = as_layout(torch.randn(2, channels, 6, 9), "last")
    w = torch.randn(40, channels // groups, 1, 1) / channels**0.5
    conv = plain(2, stride=[stride] * 2, groups=groups, padding=[padding] * 2)
    for threads in (1, 2):
        slim.library.aoti_slim_test_set_threads(threads)
        check(slim, x, w, torch.randn(40), conv)
