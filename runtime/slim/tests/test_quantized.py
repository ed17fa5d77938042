"""Linear layers with 8-bit and 4-bit weights: against float64 and PyTorch, on every CPU level."""

from __future__ import annotations

import os

# What PyTorch packs 4-bit weights for; read by torch when it is loaded.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import ctypes
from collections.abc import Iterator

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

slim = harness.load()

FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def cpu_levels() -> list[int]:
    """Those of this machine, by number."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = cpuinfo.read().split()
    return [0, *([1] if "avx2" in flags else []), *([2] if "avx512vl" in flags else [])]


@pytest.fixture(params=cpu_levels())
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    slim.library.aoti_slim_set_cpu_level(request.param)
    slim.library.aoti_slim_test_set_threads(2)
    yield request.param
    slim.library.aoti_slim_set_cpu_level(-1)
    slim.library.aoti_slim_test_set_threads(1)


def int4_linear(
    x: torch.Tensor, weight: torch.Tensor, group: int, scales: torch.Tensor
) -> torch.Tensor:
    handles = [slim.borrow(tensor).value or 0 for tensor in (x, weight, scales)]
    values = (handles[0], handles[1], group, handles[2])
    stack = (ctypes.c_uint64 * 4)(*values)  # the operator owns its arguments
    name = b"aten::_weight_int4pack_mm_for_cpu"
    if slim.library.aoti_torch_call_dispatcher(name, b"", stack) != 0:
        what = slim.library.torch_exception_get_what_without_backtrace()
        raise harness.OpError(what.decode())
    handle = ctypes.c_void_p(stack[0])
    result = slim.read(handle)
    slim.library.aoti_torch_delete_tensor_object(handle)
    return result


def assert_close_to_exact(
    actual: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, scale: float = 1
) -> None:
    """weight: [n, k] in float64. The integers' rounding is that of float, or of 16 bits."""
    exact = x.double() @ weight.t()
    size = x.double().abs() @ weight.abs().t()
    bound = (x.shape[1] + 20) * 2.0**-24 * size
    if actual.dtype != torch.float32:
        bound = bound + torch.finfo(actual.dtype).eps * exact.abs() + 2.0**-14 * size + 2.0**-24
    assert actual.shape == exact.shape
    assert torch.all((actual.double() - exact).abs() <= scale * bound)


def pack(weight: torch.Tensor) -> torch.Tensor:
    """As PyTorch packs numbers 0..15 [n, k] on CPUs with AVX2, whatever this one has."""
    n, k = weight.shape
    whole = n // 32 * 32
    low, high = weight[:whole].reshape(-1, 2, 16, k).unbind(1)
    blocks = (low | high << 4).transpose(1, 2).flatten()
    even, odd = weight[whole:].reshape(-1, 2, k).unbind(1)
    rest = (even | odd << 4).t().flatten()
    return torch.cat([blocks, rest]).to(torch.uint8).reshape(n, k // 2)


def int4_case(
    n: int, k: int, group: int, dtype: torch.dtype, seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Numbers 0..15 [n, k], scales and zeros, and the weight that they stand for, in float64."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(0, 16, (n, k), dtype=torch.int32, generator=generator)
    scales = torch.randn(k // group, n, 2, generator=generator).to(dtype)
    scale, zero = (scales[..., i].t().double().repeat_interleave(group, dim=1) for i in (0, 1))
    return numbers, scales, (numbers - 8) * scale + zero


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "AVX512",
    reason="PyTorch packs for AVX-512 here; ATEN_CPU_CAPABILITY=avx2 makes it pack for AVX2",
)
def test_the_layout_is_pytorchs() -> None:
    for n in (16, 32, 48, 64, 80):
        numbers, _, _ = int4_case(n, 64, 32, torch.float32, n)
        theirs = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 2)
        assert torch.equal(pack(numbers), theirs)


@settings(max_examples=40, deadline=None)
@given(
    level=st.sampled_from(cpu_levels()),
    dtype=st.sampled_from(FLOATS),
    m=st.sampled_from([0, 1, 2, 7, 8, 9, 20, 40]),
    n=st.sampled_from([16, 32, 48, 64, 112, 320]),
    group=st.sampled_from([32, 64, 128, 256]),
    groups=st.sampled_from([1, 2, 3]),
    threads=st.sampled_from([1, 3]),
)
def test_int4(level, dtype, m, n, group, groups, threads) -> None:  # type: ignore[no-untyped-def]
    slim.library.aoti_slim_set_cpu_level(level)
    slim.library.aoti_slim_test_set_threads(threads)
    numbers, scales, weight = int4_case(n, group * groups, group, dtype, m)
    x = torch.randn(m, group * groups).to(dtype)
    result = int4_linear(x, pack(numbers), group, scales)
    assert result.dtype == dtype
    assert_close_to_exact(result, x, weight)
    if m > 0:
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 2)
        theirs = torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, scales)
        rtol, atol = (1e-4, 5e-3) if dtype == torch.float32 else (2e-2, 0.5)
        torch.testing.assert_close(result, theirs, rtol=rtol, atol=atol)


def test_int4_of_activations_of_very_different_sizes(level: int) -> None:
    numbers, scales, weight = int4_case(64, 256, 32, torch.float32, 1)
    x = torch.randn(2, 256)
    x[0, 5] = 1e6
    x[1, :32] = 0
    x[1, 64:96] *= 1e-30
    x[1, 96:128] *= 1e-42  # subnormal
    x[1, 128:] *= 1e30
    result = int4_linear(x, pack(numbers), 32, scales)
    # The integers' steps are as large as the largest activation asks for.
    size = x.double().abs().amax(1, keepdim=True) * weight.abs().amax(1) * 256
    exact = x.double() @ weight.t()
    assert torch.all((result.double() - exact).abs() <= 2.0**-22 * size)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_int4_of_special_numbers(level: int, value: float) -> None:
    numbers, scales, weight = int4_case(48, 64, 32, torch.float32, 1)
    x = torch.randn(3, 64)
    x[1, 40] = value
    result = int4_linear(x, pack(numbers), 32, scales)
    expected = (x.double() @ weight.t()).float()
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_int4_of_a_transposed_input() -> None:
    numbers, scales, weight = int4_case(32, 64, 32, torch.bfloat16, 1)
    x = torch.randn(64, 3).bfloat16().t()
    assert_close_to_exact(int4_linear(x, pack(numbers), 32, scales), x, weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": 16}, "groups of 16"),
        ({"x": torch.zeros(2, 128)}, "don't fit"),
        ({"x": torch.zeros(64)}, "rank"),
        ({"x": torch.zeros(2, 64, dtype=torch.float64)}, "float64"),
        ({"x": torch.zeros(2, 64).half()}, "must be float16"),
        ({"scales": torch.zeros(3, 32, 2)}, r"must be \[2, 32, 2\]"),
        ({"scales": torch.zeros(2, 2, 32).transpose(1, 2)}, "contiguous"),
        ({"weight": torch.zeros(32, 32, dtype=torch.int8)}, "uint8"),
        ({"weight": torch.zeros(24, 32, dtype=torch.uint8)}, "don't fit"),
    ],
)
def test_bad_arguments_of_int4_are_refused(
    change: dict[str, torch.Tensor | int], message: str
) -> None:
    numbers, scales, _ = int4_case(32, 64, 32, torch.float32, 1)
    arguments = {
        "x": torch.zeros(2, 64),
        "weight": pack(numbers),
        "group": 32,
        "scales": scales,
        **change,
    }
    with pytest.raises(harness.OpError, match=message):
        int4_linear(**arguments)  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    level=st.sampled_from(cpu_levels()),
    dtype=st.sampled_from(FLOATS),
    m=st.sampled_from([0, 1, 2, 7, 20]),
    n=st.sampled_from([0, 1, 4, 17, 64, 130]),
    k=st.sampled_from([0, 1, 7, 32, 100, 333]),
    layout=st.sampled_from(["plain", "transposed", "sliced"]),
    threads=st.sampled_from([1, 3]),
)
def test_int8(level, dtype, m, n, k, layout, threads) -> None:  # type: ignore[no-untyped-def]
    slim.library.aoti_slim_set_cpu_level(level)
    slim.library.aoti_slim_test_set_threads(threads)
    x = torch.randn(m, k)
    if layout == "transposed":
        x = torch.randn(k, m).t()
    elif layout == "sliced":
        x = torch.randn(m, 2 * k + 3)[:, 3::2]
    x = x.to(dtype)
    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    scales = torch.rand(n).to(dtype)
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, scales)
    assert result.dtype == dtype
    assert_close_to_exact(result, x, weight.double() * scales.double()[:, None])


@pytest.mark.parametrize("dtype", FLOATS)
def test_int8_is_as_pytorch_has_it(level: int, dtype: torch.dtype) -> None:
    x = torch.randn(5, 256).to(dtype)
    weight = torch.randint(-128, 128, (64, 256), dtype=torch.int8)
    scales = torch.rand(64).to(dtype)
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, scales)
    expected = torch.ops.aten._weight_int8pack_mm(x, weight, scales)
    rtol, atol = (1e-5, 1e-2) if dtype == torch.float32 else (2e-2, 1)
    harness.assert_equal(result, expected, rtol=rtol, atol=atol, strides=True)


def test_int8_of_special_numbers(level: int) -> None:
    x = torch.ones(3, 40)
    x[0, 3], x[1, 4] = torch.nan, torch.inf
    weight = torch.ones(5, 40, dtype=torch.int8)
    weight[2] = -1
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, torch.ones(5))
    harness.assert_equal(result, x @ weight.float().t())


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, torch.zeros(2, 3), "don't fit"),
        (0, torch.zeros(8), "rank"),
        (0, torch.zeros(2, 8, dtype=torch.float64), "float64"),
        (1, torch.zeros(4, 8, dtype=torch.uint8), "int8"),
        (1, torch.zeros(8, 4, dtype=torch.int8).t(), "contiguous"),
        (2, torch.zeros(5), "don't fit"),
        (2, torch.zeros(4).half(), "must be float32"),
    ],
)
def test_bad_arguments_of_int8_are_refused(
    position: int, value: torch.Tensor, message: str
) -> None:
    arguments = [torch.zeros(2, 8), torch.zeros(4, 8, dtype=torch.int8), torch.zeros(4)]
    arguments[position] = value
    with pytest.raises(harness.OpError, match=message):
        slim.call("aoti_torch_cpu__weight_int8pack_mm", *arguments)
