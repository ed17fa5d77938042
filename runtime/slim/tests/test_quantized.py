"""Linear layers with 8-bit and 4-bit weights: against float64 and PyTorch, on every CPU level."""

from __future__ import annotations

import os

# The instruction set for which PyTorch packs 4-bit weights; torch reads this when it is loaded.
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
    """The levels of this machine, by number; 3 is level 2 with AVX512_VNNI."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        flags = set(cpuinfo.read().split())
    needs = {1: {"avx2"}, 2: {"avx512vl"}, 3: {"avx512vl", "avx512_vnni", "avx512vbmi"}}
    return [0, *(level for level, needed in needs.items() if needed <= flags)]


def set_level(level: int) -> None:
    slim.library.aoti_slim_set_cpu_level(min(level, 2))
    slim.library.aoti_slim_allow_vnni(int(level != 2))


@pytest.fixture(autouse=True)
def _the_cpu_as_it_is() -> Iterator[None]:
    yield
    set_level(-1)
    slim.library.aoti_slim_test_set_threads(1)


@pytest.fixture(params=cpu_levels())
def level(request: pytest.FixtureRequest) -> int:
    set_level(request.param)
    slim.library.aoti_slim_test_set_threads(2)
    return int(request.param)


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
    """weight: [n, k] in float64. The rounding to integers has the precision of float, or of 16
    bits."""
    exact = x.double() @ weight.t()
    size = x.double().abs() @ weight.abs().t()
    bound = (x.shape[1] + 20) * 2.0**-24 * size
    if actual.dtype != torch.float32:
        bound = bound + torch.finfo(actual.dtype).eps * exact.abs() + 2.0**-14 * size + 2.0**-24
    assert actual.shape == exact.shape
    assert torch.all((actual.double() - exact).abs() <= scale * bound)


def pack(weight: torch.Tensor) -> torch.Tensor:
    """Packs numbers 0..15 [n, k] as PyTorch does on CPUs with AVX2, on any CPU."""
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
    """Numbers 0..15 [n, k], scales and zeros, and the weight that they represent, in float64."""
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


@settings(max_examples=30)
@given(
    level=st.sampled_from(cpu_levels()),
    dtype=st.sampled_from(FLOATS),
    m=st.sampled_from([0, *range(1, 10), 15, 16, 17, 31, 33, 100, 202]),
    n=st.sampled_from([16, 32, 48, 64, 112, 320]),
    group=st.sampled_from([32, 64, 128, 256]),
    groups=st.sampled_from([1, 2, 3]),
    threads=st.sampled_from([1, 3]),
)
def test_int4(level, dtype, m, n, group, groups, threads) -> None:  # type: ignore[no-untyped-def]
    set_level(level)
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
    # The largest activation determines the step of the integers.
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


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize(("n", "k"), [(320, 1536), (192, 576)])
def test_errors_are_of_the_size_of_float32s(level: int, rows: int, n: int, k: int) -> None:
    """Integers of 24 bits are precise relative to the largest activation, float32 relative to
    each. Libraries add up in orders that differ from CPU to CPU: here it is that of the terms."""
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(rows, k, generator=generator)
    x[:, ::100] *= 30  # like the activations of language models

    def error(result: torch.Tensor, weight: torch.Tensor) -> float:
        exact = x.double() @ weight.double().t()
        return float((result.double() - exact).square().mean().sqrt())

    def in_order(weight: torch.Tensor) -> torch.Tensor:
        result = torch.zeros(rows, n)
        for activations, column in zip(x.t(), weight.float().t(), strict=True):
            result += activations.unsqueeze(-1) * column
        return result

    numbers, scales, weight = int4_case(n, k, 64, torch.float32, 1)
    result = int4_linear(x, pack(numbers), 64, scales)
    assert error(result, weight) <= 2 * error(in_order(weight), weight)

    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8, generator=generator)
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, torch.ones(n))
    assert error(result, weight) <= 2 * error(in_order(weight), weight)


@pytest.mark.parametrize("rows", [1, 5, 19, 40, 110])
def test_results_do_not_depend_on_the_number_of_threads(level: int, rows: int) -> None:
    numbers, scales, _ = int4_case(1040, 256, 64, torch.float32, 1)
    x = torch.randn(rows, 256)
    weight = torch.randint(-128, 128, (1037, 256), dtype=torch.int8)

    def results(threads: int) -> tuple[torch.Tensor, torch.Tensor]:
        slim.library.aoti_slim_test_set_threads(threads)
        (of_int8,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, torch.ones(1037))
        return int4_linear(x, pack(numbers), 64, scales), of_int8

    for one, three in zip(results(1), results(3), strict=True):
        assert torch.equal(one, three)


def test_int4_of_a_transposed_input() -> None:
    numbers, scales, weight = int4_case(32, 64, 32, torch.bfloat16, 1)
    x = torch.randn(64, 3).bfloat16().t()
    assert_close_to_exact(int4_linear(x, pack(numbers), 32, scales), x, weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": 16}, "groups of 16"),
        ({"x": torch.zeros(2, 128)}, "do not match"),
        ({"x": torch.zeros(64)}, "rank"),
        ({"x": torch.zeros(2, 64, dtype=torch.float64)}, "float64"),
        ({"x": torch.zeros(2, 64).half()}, "must be float16"),
        ({"scales": torch.zeros(3, 32, 2)}, r"must be \[2, 32, 2\]"),
        ({"scales": torch.zeros(2, 2, 32).transpose(1, 2)}, "contiguous"),
        ({"weight": torch.zeros(32, 32, dtype=torch.int8)}, "uint8"),
        ({"weight": torch.zeros(24, 32, dtype=torch.uint8)}, "do not match"),
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


@settings(max_examples=30)
@given(
    level=st.sampled_from(cpu_levels()),
    dtype=st.sampled_from(FLOATS),
    m=st.sampled_from([0, *range(1, 10), 15, 16, 17, 31, 33, 100, 202]),
    n=st.sampled_from([0, 1, 4, 17, 64, 130]),
    k=st.sampled_from([0, 1, 7, 32, 100, 333, 1024, 1031]),
    layout=st.sampled_from(["plain", "transposed", "sliced"]),
    threads=st.sampled_from([1, 3]),
)
def test_int8(level, dtype, m, n, k, layout, threads) -> None:  # type: ignore[no-untyped-def]
    set_level(level)
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


@pytest.mark.parametrize("rows", [3, 18, 40])
def test_int8_of_special_numbers(level: int, rows: int) -> None:
    x = torch.ones(rows, 1030)
    x[0, 3], x[1, 4], x[2, 1029] = torch.nan, torch.inf, -torch.inf
    weight = torch.ones(5, 1030, dtype=torch.int8)
    weight[2] = -1
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, torch.ones(5))
    harness.assert_equal(result, x @ weight.float().t())


@pytest.mark.parametrize("rows", [1, 4, 20])
def test_sums_of_the_largest_integers_do_not_overflow(level: int, rows: int) -> None:
    x = torch.full((2 * rows, 2048), (126 + 127 / 256) / 127)  # bytes of 126 and 127
    x[:, ::512] = 1
    x[rows:] *= -1
    weight = torch.full((40, 2048), -128, dtype=torch.int8)
    weight[20:] = 127
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, torch.ones(40))
    assert_close_to_exact(result, x, weight.double())
    numbers = torch.zeros(64, 2048, dtype=torch.int32)
    numbers[20:] = 15
    scales = torch.ones(8, 64, 2)
    assert_close_to_exact(int4_linear(x, pack(numbers), 256, scales), x, numbers.double() - 8 + 1)


@pytest.mark.parametrize("rows", [5, 21])
def test_int8_of_activations_of_very_different_sizes(level: int, rows: int) -> None:
    weight = torch.randint(-128, 128, (33, 1536), dtype=torch.int8)
    x = torch.randn(rows, 1536)
    x[0, 5] = 1e6
    x[1] = 0
    x[2] *= 1e-42  # subnormal
    x[3, 1024:] *= 1e30
    x[4] *= 1e32
    (result,) = slim.call("aoti_torch_cpu__weight_int8pack_mm", x, weight, torch.ones(33))
    size = x.double().abs().amax(1, keepdim=True) * weight.double().abs().sum(1)
    exact = x.double() @ weight.double().t()
    assert torch.all((result.double() - exact).abs() <= 2.0**-22 * size + 2.0**-126)
    assert torch.all(result[1] == 0)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, torch.zeros(2, 3), "do not match"),
        (0, torch.zeros(8), "rank"),
        (0, torch.zeros(2, 8, dtype=torch.float64), "float64"),
        (1, torch.zeros(4, 8, dtype=torch.uint8), "int8"),
        (1, torch.zeros(8, 4, dtype=torch.int8).t(), "contiguous"),
        (2, torch.zeros(5), "do not match"),
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


def quantize(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Quantizes 8-bit activations as torchao does: (step, integer of 0, integers) for each row."""
    low, high = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
    step = (high - low) / 255
    zero = (-128 - torch.round(low / step)).clamp(-128, 127)
    return step, zero, (torch.round(x * (1 / step)) + zero).clamp(-128, 127)


def test_dynamic_quantization_differs_by_one_step_at_an_edge() -> None:
    """Rounding activations to integers can turn a difference in the last bit into a whole step.

    slim and PyTorch add up a product in different orders. If a number is half way between two
    integers, up to that difference, the two may round it differently: then a row of the next
    layer's results differs by the step times a column of the weight, and by no more.
    """
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4000, 64, generator=generator)
    first, second = (
        torch.randint(-8, 8, shape, generator=generator) / 61.0 for shape in [(64, 128), (128, 64)]
    )
    hidden = torch.empty(4000, 128)
    slim.call("aoti_torch_cpu_mm_out", hidden, x, first)
    theirs = x @ first
    exact = x.double() @ first.double()
    step, zero, integers = quantize(hidden)
    their_step, their_zero, their_integers = quantize(theirs)
    differ = integers - zero != their_integers - their_zero
    assert torch.all((integers - zero - their_integers + their_zero).abs() <= 1)
    # Each of them is half way between two integers.
    halves = (exact / step.double()).remainder(1) - 0.5
    assert torch.all(halves[differ].abs() <= 1e-3)
    # Nothing else differs.
    result = torch.empty(4000, 64)
    slim.call("aoti_torch_cpu_mm_out", result, (integers - zero) * step, second)
    expected = ((their_integers - their_zero) * their_step) @ second
    bound = differ.float() * step @ second.abs() * 1.001 + 1e-4
    assert torch.all((result - expected).abs() <= bound)
