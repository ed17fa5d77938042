"""Random numbers: the same as PyTorch's for the same seed."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dispatcher
import pytest
import torch
from by_name import call_by_name
from harness import OpError, assert_equal, load
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

slim = load()
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
SIZES = [(), (0,), (1,), (15,), (16,), (17,), (7, 5), (1000,), (3, 4, 67)]
LEVELS = {"AVX512": [0, 1, 2], "AVX2": [0, 1], "DEFAULT": [0]}.get(
    torch.backends.cpu.get_cpu_capability(), [3]
)
MANUAL_SEED = slim.library.aoti_slim_manual_seed
MANUAL_SEED.argtypes = [ctypes.c_uint64]
MANUAL_SEED.restype = None


def seed(value: int) -> None:
    torch.manual_seed(value)
    MANUAL_SEED(value)


def call(name: str, *args: Any) -> tuple[Tensor, ...]:
    return slim.call(f"aoti_torch_cpu_{name}", *args)


def same(actual: Tensor, expected: Tensor) -> None:
    """Compares all bits, and the layout."""
    assert_equal(actual, expected, rtol=0, atol=0, strides=True)


def options(dtype: torch.dtype | None) -> tuple[Any, ...]:
    """dtype, layout, device, its index, pin_memory"""
    return dtype, None, None, 0, None


def still_in_step() -> None:
    """Both generators have drawn equally many numbers."""
    (own,) = call("randint", 1 << 40, [3], *options(None))
    same(own, torch.randint(1 << 40, (3,)))


def test_the_default_seed() -> None:
    """The seed is PyTorch's default. The last line of output is the process's first random
    number."""
    code = "import harness; print(harness.load().call('aoti_torch_cpu_randint', 1 << 40, [1],"
    code += " None, None, None, 0, None)[0].item())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    torch.manual_seed(67280421310721)
    assert int(done.stdout.split()[-1]) == torch.randint(1 << 40, (1,)).item()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_rand(dtype: torch.dtype, size: tuple[int, ...]) -> None:
    seed(len(size))
    same(call("rand", list(size), *options(dtype))[0], torch.rand(size, dtype=dtype))
    still_in_step()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_randn(level: int, dtype: torch.dtype, size: tuple[int, ...]) -> None:
    slim.library.aoti_slim_set_cpu_level(level)
    for value in range(20):
        seed(value)
        (own,) = call("randn", list(size), *options(dtype))
        same(own, torch.randn(size, dtype=dtype))
    still_in_step()


def test_many_normal_numbers() -> None:
    seed(1)
    same(call("randn", [300000], *options(None))[0], torch.randn(300000))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex(dtype: torch.dtype) -> None:
    for size in (3, 8, 33):
        seed(size)
        same(call("rand", [size], *options(dtype))[0], torch.rand(size, dtype=dtype))
        same(call("randn", [size], *options(dtype))[0], torch.randn(size, dtype=dtype))


def test_normal_numbers_that_come_in_pairs() -> None:
    """The second number of a pair is kept for the next call; a seed discards it."""
    seed(4)
    for size in (3, 1, 20, 5):
        same(call("randn", [size], *options(None))[0], torch.randn(size))
    seed(4)
    same(call("randn", [1], *options(None))[0], torch.randn(1))
    seed(4)
    same(call("randn", [1], *options(None))[0], torch.randn(1))


LAYOUTS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    lambda x: x.transpose(0, 1),
    lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    lambda x: x[:, ::2],
    lambda x: x[:, :, :1].expand(-1, -1, 4, -1),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_like_and_functional(layout: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    x = layout(torch.ones(2, 4, 3, 5, dtype=dtype))
    aten = torch.ops.aten
    seed(9)
    same(call("rand_like", x, *options(None), None)[0], torch.rand_like(x))
    same(call("randn_like", x, *options(None), None)[0], torch.randn_like(x))
    same(call("randint_like", x, 9, *options(None), None)[0], torch.randint_like(x, 9))
    (own,) = call("randint_like_low_dtype", x, -4, 9, *options(torch.int32), None)
    same(own, torch.randint_like(x, -4, 9, dtype=torch.int32))
    same(call("uniform", x, -2.5, 3.0, None)[0], aten.uniform(x, -2.5, 3.0))
    same(call("exponential", x, 1.5, None)[0], aten.exponential(x, 1.5))
    (own,) = call("normal_functional", x, 2.0, 0.5, None)
    same(own, aten.normal_functional(x, 2.0, 0.5))
    for memory_format in (0, 1, 2):
        names = [torch.contiguous_format, torch.preserve_format, torch.channels_last]
        expected = torch.rand_like(x, memory_format=names[memory_format])
        same(call("rand_like", x, *options(None), memory_format)[0], expected)


@pytest.mark.filterwarnings("ignore:.*is out of bounds")
@settings(max_examples=60)
@given(
    low=st.one_of(st.integers(-300, 300), st.integers(-(2**63), 2**62)),
    width=st.one_of(st.integers(1, 300), st.integers(1, 2**62)),
    value=st.integers(0, 2**64 - 1),
)
def test_randint(low: int, width: int, value: int) -> None:
    seed(value)
    high = min(low + width, 2**63 - 1)
    for dtype in [*INTEGERS, *FLOATS, torch.bool]:
        try:
            expected = torch.randint(low, high, (9,), dtype=dtype)
        except RuntimeError:
            with pytest.raises(OpError, match=r"doesn't fit into|must be less|too coarse"):
                call("randint_low", low, high, [9], *options(dtype))
        else:
            same(call("randint_low", low, high, [9], *options(dtype))[0], expected)


def test_seeds_of_generated_code() -> None:
    """Inductor's kernels have their own generator, which is seeded from this one."""
    seed(5)
    for size in (1, 6):
        own, theirs = (torch.empty(size, dtype=torch.int64) for _ in range(2))
        torch.randint(-(2**63), 2**63 - 1, [size], out=theirs)
        call("randint_low_out", own, -(2**63), 2**63 - 1, [size])
        same(own, theirs)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
@pytest.mark.parametrize("layout", LAYOUTS[:4])
def test_bernoulli(dtype: torch.dtype, layout: Callable[[Tensor], Tensor]) -> None:
    seed(6)
    own, theirs = (layout(torch.zeros(2, 4, 3, 5)).to(dtype) for _ in range(2))
    call("bernoulli__float", own, 0.3, None)
    if torch._C.has_mkl and _is_intel():
        assert set(own.flatten().tolist()) <= {0, 1}
        return
    same(own, theirs.bernoulli_(0.3))
    for kind in FLOATS:
        chances = torch.rand(own.shape[-1]).to(kind)
        MANUAL_SEED(torch.initial_seed())
        torch.manual_seed(torch.initial_seed())
        call("bernoulli__Tensor", own, chances, None)
        same(own, theirs.bernoulli_(chances))


def _is_intel() -> bool:
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return "GenuineIntel" in info.read()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("train", [True, False, None])
@pytest.mark.skipif(_is_intel(), reason="PyTorch draws dropout's numbers with MKL there")
def test_dropout(dtype: torch.dtype, p: float, train: bool | None) -> None:
    for x in (torch.randn(3, 70).to(dtype), torch.randn(3, 70).to(dtype).t(), torch.zeros(0, 2)):
        seed(7)
        expected = torch.ops.aten.native_dropout(x, p, train)
        for own, theirs in zip(call("native_dropout", x, p, train), expected, strict=True):
            same(own, theirs)
    still_in_step()


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_randperm(dtype: torch.dtype, size: int) -> None:
    seed(size)
    same(call("randperm", size, *options(dtype))[0], torch.randperm(size, dtype=dtype))
    still_in_step()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("samples", [1, 2, 5])
def test_multinomial(dtype: torch.dtype, replacement: bool, samples: int) -> None:
    for weights in (torch.rand(7), torch.rand(3, 50), torch.rand(9, 4).t()):
        weights = weights.to(dtype)
        weights[..., 0] = 0
        if weights.shape[-1] > samples:
            seed(samples)
            own = call_by_name(slim, "multinomial", weights, samples, replacement, None)
            same(own, torch.multinomial(weights, samples, replacement))
    still_in_step()


@pytest.mark.parametrize(
    ("weights", "samples", "replacement", "message"),
    [
        ([1.0, -1.0], 1, False, "weight 1 is -1"),
        ([1.0, math.nan], 1, False, "weight 1 is nan"),
        ([math.inf, 1.0], 1, True, "weight 0 is inf"),
        ([0.0, 0.0], 1, False, "sum of the weights is 0"),
        ([1.0, 1.0], 3, False, "3 samples can't be drawn from 2 categories without"),
        ([1.0, 1.0], 0, True, "0 samples"),
    ],
)
def test_errors_of_multinomial(
    weights: list[float], samples: int, replacement: bool, message: str
) -> None:
    with pytest.raises(OpError, match=message):
        call_by_name(slim, "multinomial", torch.tensor(weights), samples, replacement, None)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (17,), (2, 4, 3, 5)])
def test_normal_of_tensors(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    mean, std = torch.randn(shape).to(dtype), torch.rand(shape).to(dtype)
    tensors = [(mean, std), (mean.mT, std.mT)] if len(shape) > 1 else [(mean, std)]
    tensors += [(mean[:1].expand(shape), std[..., :1])] if shape else []
    for means, stds in tensors:
        seed(10)
        (own,) = dispatcher.call(slim, "aten::normal.Tensor_float", means, 1.5, None)
        same(own, torch.normal(means, 1.5))
        (own,) = dispatcher.call(slim, "aten::normal.float_Tensor", -2.5, stds, None)
        same(own, torch.normal(-2.5, stds))
        (own,) = dispatcher.call(slim, "aten::normal.Tensor_Tensor", means, stds, None)
        same(own, torch.normal(means, stds))
    still_in_step()


def test_normal_of_other_dtypes() -> None:
    mean, std = torch.randn(5, 3), torch.rand(5, 3, dtype=torch.float64)
    numbers = torch.randn(5, dtype=torch.complex64)
    seed(11)
    (own,) = dispatcher.call(slim, "aten::normal.Tensor_Tensor", mean, std, None)
    same(own, torch.normal(mean, std))
    (own,) = dispatcher.call(slim, "aten::normal.Tensor_float", numbers, 0.5, None)
    same(own, torch.ops.aten.normal.Tensor_float(numbers, 0.5))
    still_in_step()
    for name, arguments, message in (
        ("Tensor_float", (mean, -1.0, None), "std is -1, must not be negative"),
        ("float_Tensor", (0.0, -std, None), "an element of std is -0.*, must not be negative"),
        ("Tensor_Tensor", (mean, std.long(), None), "std is int64, must be a floating-point dtype"),
    ):
        with pytest.raises(OpError, match=message):
            dispatcher.call(slim, f"aten::normal.{name}", *arguments)


def test_threads_share_one_generator() -> None:
    seed(8)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: call("rand", [64], *options(None))[0], range(32)))
    together = torch.cat(sorted(parts, key=lambda x: float(x[0])))
    expected = torch.stack(sorted(torch.rand(32, 64), key=lambda x: float(x[0]))).flatten()
    same(together, expected)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("randint_low", (5, 5, [2], *options(None)), "low is 5, must be less than high"),
        ("randint", (300, [2], *options(torch.uint8)), "0..299 doesn't fit into uint8"),
        ("randperm", (-1, *options(None)), "n is -1"),
        ("randperm", (300, *options(torch.uint8)), "299 doesn't fit into uint8"),
        ("rand", ([2], *options(torch.int64)), "int64 is not supported"),
        ("randn", ([2], *options(torch.int64)), "int64 is not supported"),
        ("rand", ([-2], *options(None)), "-2"),
        ("uniform", (torch.ones(2), 2.0, 1.0, None), "from is 2, must be at most to"),
        ("exponential", (torch.ones(2), 0.0, None), "rate is 0, must be positive"),
        ("normal_functional", (torch.ones(2), 0.0, -1.0, None), "std is -1"),
        ("bernoulli__float", (torch.ones(2), 1.5, None), r"p is 1\.5, must be in 0\.\.1"),
        ("bernoulli__float", (torch.ones(2), math.nan, None), "p is nan"),
        (
            "bernoulli__Tensor",
            (torch.ones(2), torch.tensor([0.5, 2]), None),
            "an element of p is 2",
        ),
        ("bernoulli__Tensor", (torch.ones(2), torch.tensor([1, 2]), None), "p is int64"),
        ("bernoulli__Tensor", (torch.ones(2), torch.ones(3), None), "broadcast"),
        ("native_dropout", (torch.ones(2), 1.5, True), r"p is 1\.5"),
        ("native_dropout", (torch.ones(2).int(), 0.5, True), "input is int32"),
        ("randint_low_out", (torch.ones(2).long(), 0, 5, [3]), "not have the requested size"),
        ("rand_like", (torch.ones(2), *options(None), 2), "memory format 2"),
    ],
)
def test_errors(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OpError, match=message):
        call(name, *args)
