"""mm, addmm, bmm and related operators: against float64 and PyTorch, on every CPU level."""

from __future__ import annotations

import ctypes
import itertools
import math
import platform
from collections.abc import Iterator

import amx
import harness
import pytest
import torch
from aoti_driver.packing import matmul
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

slim = harness.load()

LEVELS = ["baseline", "v3", "v4"]
# v4 has the instructions for bfloat16 that the CPU has.
NO_AMX = "v4 without AMX"
ONLY_AMX = "v4 without AVX512_BF16"
PLAIN_V4 = "v4 without AMX and AVX512_BF16"
EMULATED_AMX = "v4 with an emulated AMX"
FLOATS = [torch.float32, torch.bfloat16, torch.float16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
# Below, at and above the sizes of tiles, panels and vectors; 0 and 1; primes.
SIZES = [0, 1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 31, 32, 33, 47, 64, 101]
LAYOUTS = ["rows", "columns", "sliced"]


def cpu_levels() -> list[str]:
    """The levels of this machine."""
    best = torch.backends.cpu.get_cpu_capability()
    if best == "AVX512":
        emulated = [EMULATED_AMX] if amx.can_be_emulated() and not amx.is_there() else []
        return [*LEVELS, NO_AMX, ONLY_AMX, PLAIN_V4, *emulated]
    return LEVELS[: 2 if best == "AVX2" else 1]


def set_level(level: str) -> None:
    slim.library.aoti_slim_set_cpu_level(LEVELS.index(level.split()[0]))
    slim.library.aoti_slim_allow_bfloat16(int(level not in (ONLY_AMX, PLAIN_V4)))
    if level == EMULATED_AMX:
        amx.emulate(slim)
    elif level in (NO_AMX, PLAIN_V4):
        amx.hide(slim)
    else:
        amx.restore(slim)


def restore_level() -> None:
    slim.library.aoti_slim_set_cpu_level(-1)
    slim.library.aoti_slim_allow_bfloat16(-1)
    amx.restore(slim)


@pytest.fixture(params=cpu_levels())
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    set_level(request.param)
    yield request.param
    restore_level()


@pytest.fixture
def threads() -> Iterator[None]:
    slim.library.aoti_slim_test_set_threads(3)
    yield
    slim.library.aoti_slim_test_set_threads(1)


def matrix(rows: int, columns: int, dtype: torch.dtype, layout: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)

    def values(*shape: int) -> torch.Tensor:
        if dtype.is_complex:
            return torch.randn(*shape, generator=generator, dtype=dtype)
        if dtype.is_floating_point:
            return torch.randn(*shape, generator=generator).to(dtype)
        return torch.randint(-100, 100, shape, generator=generator).to(dtype)

    if layout == "columns":
        return values(columns, rows).t()
    if layout == "sliced":
        return values(2 * rows + 1, 3 * columns)[1::2, ::3][:rows, :columns]
    return values(rows, columns)


def assert_close_to_exact(
    actual: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    beta: float = 1,
    alpha: float = 1,
) -> None:
    """Compares with the result in float64, up to the rounding of k products and sums in float."""
    exact = alpha * (a.double() @ b.double())
    size = abs(alpha) * (a.double().abs() @ b.double().abs())
    if bias is not None and beta != 0:
        exact = exact + beta * bias.double()
        size = size + abs(beta) * bias.double().abs()
    k = a.shape[-1]
    unit = 2.0**-53 if actual.dtype == torch.float64 else 2.0**-24
    bound = (k + 4) * unit * size
    if actual.dtype not in (torch.float32, torch.float64):
        bound = bound + torch.finfo(actual.dtype).eps * exact.abs() + 2.0**-24
    assert actual.shape == exact.shape
    assert torch.all((actual.double() - exact).abs() <= bound)


@settings(max_examples=200)
@given(
    level=st.sampled_from(cpu_levels()),
    m=st.sampled_from(SIZES),
    k=st.sampled_from([*SIZES, 300, 700]),
    n=st.sampled_from(SIZES),
    dtype=st.sampled_from([*FLOATS, torch.float64]),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 4),
    factors=st.sampled_from([(0, 1), (1, 1), (1, 2.5), (-0.5, 1), (2, 0)]),
    bias_shape=st.sampled_from(["", "1", "n", "1n", "m1", "mn"]),
)
def test_addmm_of_any_size_and_layout(  # type: ignore[no-untyped-def]
    level, m, k, n, dtype, layouts, factors, bias_shape
):
    set_level(level)
    sizes = {"1": 1, "m": m, "n": n}
    a = matrix(m, k, dtype, layouts[0], 1)
    b = matrix(k, n, dtype, layouts[1], 2)
    out = matrix(m, n, dtype, layouts[2], 3)
    shape = [sizes[letter] for letter in bias_shape]
    full = matrix(max(m, 1), max(n, 1), dtype, layouts[3], 4)
    bias = full[:m, :n] if bias_shape == "mn" else full.flatten()[: max(m, n)]
    bias = bias if bias_shape == "mn" else matrix(1, max([1, *shape]), dtype, "rows", 5).flatten()
    if bias_shape != "mn":
        bias = bias[: 0 if 0 in shape else None].reshape(shape)
    beta, alpha = factors
    slim.call("aoti_torch_cpu_addmm_out", out, bias, a, b, beta, alpha)
    assert_close_to_exact(out, a, b, bias.expand(m, n), beta, alpha)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 1030, 260), (129, 1030, 70), (40, 600, 530), (300, 33, 5)])
def test_products_of_several_blocks(
    level: str, shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    m, k, n = shape
    for layout in ("rows", "columns"):
        a, b = matrix(m, k, dtype, "rows", 1), matrix(k, n, dtype, layout, 2)
        out = torch.empty(m, n, dtype=dtype)
        slim.call("aoti_torch_cpu_mm_out", out, a, b)
        assert_close_to_exact(out, a, b)


@pytest.mark.parametrize(
    ("shape", "for_amx"),
    [
        # (m, k, n), of x[m, k] and a weight [n, k]
        ((1, 64, 64), True),
        ((5, 64, 64), True),
        ((64, 64, 2), True),
        ((8, 16, 32), False),  # too small
    ],
)
def test_bfloat16_has_the_instructions_of_the_cpu(
    shape: tuple[int, int, int], for_amx: bool
) -> None:
    """They take subnormal numbers for zeros."""
    m, k, n = shape
    tiny = torch.full((m, k), 2.0**-130, dtype=torch.bfloat16)
    large = torch.full((n, k), 2.0**100, dtype=torch.bfloat16).t()
    pairs = m > 4 and amx.has_pairs()
    try:
        for level in cpu_levels():
            set_level(level)
            out = torch.empty(m, n, dtype=torch.bfloat16)
            slim.call("aoti_torch_cpu_mm_out", out, tiny, large)
            has_amx = level == EMULATED_AMX or (level in ("v4", ONLY_AMX) and amx.is_there())
            has_pairs = level in ("v4", NO_AMX, EMULATED_AMX) and pairs and n > 2
            zero = (has_amx and for_amx) or has_pairs
            assert bool((out == (0.0 if zero else k * 2.0**-30)).all()), level
    finally:
        restore_level()


@pytest.mark.skipif("v4" not in cpu_levels(), reason="the CPU has no AVX-512")
def test_bfloat16_is_multiplied_by_what_is_faster() -> None:
    """Intel's CPUs since Sapphire Rapids, which have AVX512_FP16, multiply floats faster."""
    slow = {"GenuineIntel", "avx512_fp16"} <= set(amx.cpu_flags())
    tiny = torch.full((8, 64), 2.0**-130, dtype=torch.bfloat16)
    large = torch.full((64, 64), 2.0**100, dtype=torch.bfloat16)
    out = torch.empty(8, 64, dtype=torch.bfloat16)
    try:
        amx.hide(slim)
        slim.call("aoti_torch_cpu_mm_out", out, tiny, large)
        pairs = amx.has_pairs() and not slow
        assert bool((out == (0.0 if pairs else 64 * 2.0**-30)).all())
    finally:
        amx.restore(slim)


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    "shape", [(1, 700, 900), (3, 513, 800), (49, 32, 49), (150, 130, 200), (1000, 70, 3)]
)
@pytest.mark.usefixtures("threads")
def test_subnormal_numbers_of_float32_are_zeros(
    level: str, shape: tuple[int, int, int], turned: tuple[bool, bool]
) -> None:
    """On x86-64, where Intel's CPUs take a hundred times as long for a product with one."""
    m, k, n = shape
    a = torch.full((k, m), 2.0**-130).t() if turned[0] else torch.full((m, k), 2.0**-130)
    b = torch.full((n, k), 2.0**100).t() if turned[1] else torch.full((k, n), 2.0**100)
    out = torch.empty(m, n)
    slim.call("aoti_torch_cpu_mm_out", out, a, b)
    assert bool((out == (0.0 if platform.machine() == "x86_64" else k * 2.0**-30)).all())
    slim.call("aoti_torch_cpu_mm_out", out, a * 2**10, b)
    assert bool((out == k * 2.0**-20).all())
    assert float((a[0, 0] * 2.0**100).item()) == 2.0**-30  # for the caller, they are numbers


@pytest.mark.usefixtures("threads")
def test_subnormal_numbers_of_a_stack_are_zeros(level: str) -> None:
    out = torch.empty(5, 49, 32)
    a, b = torch.full((5, 49, 49), 2.0**-130), torch.full((5, 49, 32), 2.0**100)
    slim.call("aoti_torch_cpu_bmm_out", out, a, b)
    assert bool((out == (0.0 if platform.machine() == "x86_64" else 49 * 2.0**-30)).all())


@pytest.mark.usefixtures("threads")
def test_subnormal_numbers_of_float16_are_numbers(level: str) -> None:
    out = torch.empty(150, 200, dtype=torch.float16)
    a, b = torch.full((150, 64), 2.0**-20).half(), torch.full((64, 200), 2.0**10).half()
    slim.call("aoti_torch_cpu_mm_out", out, a, b)
    assert bool((out == 64 * 2.0**-10).all())


@pytest.mark.parametrize("k", [31, 64, 100, 673, 1312])
@pytest.mark.parametrize("layouts", [(a, b) for a in LAYOUTS for b in LAYOUTS])
@pytest.mark.parametrize(
    "level",
    [each for each in cpu_levels() if each in ("v4", NO_AMX, EMULATED_AMX)],
    indirect=True,
)
def test_products_of_bfloat16_at_the_edges_of_tiles(
    level: str, layouts: tuple[str, str], k: int
) -> None:
    for m in [1, 5, 16, 33]:
        for n in [1, 16, 31, 70]:
            a = matrix(m, k, torch.bfloat16, layouts[0], 1)
            b = matrix(k, n, torch.bfloat16, layouts[1], 2)
            bias = matrix(m, n, torch.bfloat16, "rows", 3)
            for out in (torch.empty(m, n), torch.empty(n, m).t()):
                result = out.bfloat16()
                slim.call("aoti_torch_cpu_addmm_out", result, bias, a, b, 0.5, 2)
                assert_close_to_exact(result, a, b, bias, 0.5, 2)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", FLOATS)
def test_results_do_not_depend_on_threads(level: str, dtype: torch.dtype) -> None:
    for m, k, n in [(1, 700, 900), (3, 513, 800), (150, 130, 200), (1000, 70, 3), (37, 600, 64)]:
        for layout in LAYOUTS:
            a, b = matrix(m, k, dtype, "rows", 1), matrix(k, n, dtype, layout, 2)
            results = []
            for count in (1, 2, 3, 7):
                slim.library.aoti_slim_test_set_threads(count)
                out = torch.empty(m, n, dtype=dtype)
                slim.call("aoti_torch_cpu_mm_out", out, a, b)
                results.append(out)
            assert_close_to_exact(results[0], a, b)
            assert all(torch.equal(results[0], other) for other in results[1:])


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(INTEGERS),
    m=st.sampled_from(SIZES),
    k=st.sampled_from(SIZES),
    n=st.sampled_from(SIZES),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 2),
)
def test_integers_wrap(dtype, m, k, n, layouts) -> None:  # type: ignore[no-untyped-def]
    a, b = matrix(m, k, dtype, layouts[0], 1), matrix(k, n, dtype, layouts[1], 2)
    bias = matrix(m, n, dtype, "rows", 3)
    out = torch.empty(m, n, dtype=dtype)
    slim.call("aoti_torch_cpu_addmm_out", out, bias, a, b, 3, 2)
    assert torch.equal(out, torch.addmm(bias, a, b, beta=3, alpha=2))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 1, 1), (7, 0, 3), (13, 33, 70)])
def test_complex_numbers(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    m, k, n = shape
    a, b = matrix(m, k, dtype, "columns", 1), matrix(k, n, dtype, "rows", 2)
    out = torch.empty(m, n, dtype=dtype)
    slim.call("aoti_torch_cpu_addmm_out", out, matrix(1, n, dtype, "rows", 3), a, b, 0.5, 2)
    expected = torch.addmm(matrix(1, n, dtype, "rows", 3), a, b, beta=0.5, alpha=2)
    harness.assert_equal(out, expected)


def test_nan_and_infinity(level: str) -> None:
    a, b = torch.ones(20, 40), torch.ones(40, 50)
    a[3, 5], a[4, 6], b[7, 8] = torch.nan, torch.inf, -torch.inf
    for right in (b, b.t().contiguous().t()):
        out = torch.empty(20, 50)
        slim.call("aoti_torch_cpu_mm_out", out, a, right)
        harness.assert_equal(out, a @ b)
        # A bias that is multiplied by 0 is not read, and neither are matrices.
        slim.call("aoti_torch_cpu_addmm_out", out, torch.full((50,), torch.nan), a, right, 0, 1)
        harness.assert_equal(out, a @ b)
        slim.call("aoti_torch_cpu_addmm_out", out, torch.ones(50), a, right, 1, 0)
        assert torch.equal(out, torch.addmm(torch.ones(50), a, right, alpha=0))


def test_out_may_be_the_bias(level: str) -> None:
    a, b, c = torch.randn(33, 1100), torch.randn(1100, 70), torch.randn(33, 70)
    out = c.clone()
    slim.call("aoti_torch_cpu_addmm_out", out, out, a, b, 2, 1)
    assert_close_to_exact(out, a, b, c, 2)


class Packed:
    """A weight b[k, n], or a stack of them, that is only stored as the packed copy."""

    def __init__(self, weight: torch.Tensor, kind: str) -> None:
        data = matmul.pack(kind, weight)
        self.kind = kind.encode()
        self.memory = torch.empty(data.numel() + 64, dtype=torch.uint8)
        start = -self.memory.data_ptr() % 64
        self.memory[start : start + data.numel()] = data
        b = weight if kind.endswith("_rows") else weight.mT
        self.handle = ctypes.c_void_p()
        array = ctypes.c_int64 * b.dim()
        zero = ctypes.c_int64(0)
        number = ctypes.c_int32(harness._DTYPES[weight.dtype])
        device = ctypes.c_int32(0)
        box = ctypes.byref(self.handle)
        rank = ctypes.c_int64(b.dim())
        library = slim.library
        sizes, strides = array(*b.shape), array(*b.stride())
        assert (
            library.aoti_torch_create_tensor_from_blob(
                None, rank, sizes, strides, zero, number, device, device, box
            )
            == 0
        )
        address = ctypes.c_void_p(self.memory.data_ptr() + start)
        size = ctypes.c_size_t(data.numel())
        assert library.aoti_slim_set_packed(self.handle, self.kind, address, size) == 0

    def close(self) -> None:
        slim.library.aoti_torch_delete_tensor_object(self.handle)


@settings(max_examples=80)
@given(
    level=st.sampled_from(cpu_levels()),
    kind=st.sampled_from(matmul.KINDS),
    m=st.sampled_from([1, 2, 3, 4, 5, 8, 14, 16, 33, 70]),
    k=st.sampled_from([1, 3, 16, 100, 700]),
    n=st.sampled_from([1, 8, 15, 16, 17, 64, 129, 600]),
    layout=st.sampled_from(LAYOUTS),
    threads=st.sampled_from([1, 2, 3]),
)
def test_packed_weights(level, kind, m, k, n, layout, threads) -> None:  # type: ignore[no-untyped-def]
    set_level(level)
    slim.library.aoti_slim_test_set_threads(threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[kind.split("_")[1]]
    shape = (k, n) if kind.endswith("_rows") else (n, k)
    weight = matrix(*shape, dtype, "rows", 1)
    b = weight if kind.endswith("_rows") else weight.t()
    a, out, bias = (
        matrix(m, k, dtype, layout, 2),
        matrix(m, n, dtype, layout, 3),
        matrix(1, n, dtype, "rows", 4)[0],
    )
    constant = Packed(weight, kind)
    handles = [slim.borrow(t) for t in (out, bias, a)]
    status = slim.library.aoti_torch_cpu_addmm_out(
        *handles, constant.handle, ctypes.c_double(1), ctypes.c_double(1)
    )
    for own in handles:
        slim.library.aoti_torch_delete_tensor_object(own)
    constant.close()
    slim.library.aoti_slim_test_set_threads(1)
    assert status == 0
    assert_close_to_exact(out, a, b, bias.expand(m, n))


@settings(max_examples=60)
@given(
    level=st.sampled_from(cpu_levels()),
    packed=st.booleans(),
    m=st.sampled_from([1, 2, 5, 14, 16, 33, 70]),
    k=st.sampled_from([0, 1, 16, 700]),
    n=st.sampled_from([1, 8, 15, 17, 64, 129]),
    gelu=st.booleans(),
    threads=st.sampled_from([1, 3]),
)
def test_activation_of_a_product(level, packed, m, k, n, gelu, threads) -> None:  # type: ignore[no-untyped-def]
    """It is that of the product alone, in tiles and after them."""
    set_level(level)
    slim.library.aoti_slim_test_set_threads(threads)
    weight = matrix(n, k, torch.float32, "rows", 1)
    a, bias = matrix(m, k, torch.float32, "rows", 2), matrix(1, n, torch.float32, "rows", 4)[0] * 9
    bias[0] = torch.nan
    product = torch.empty(m, n)
    constant = Packed(weight, "gemm_f32") if packed and k else None
    handles = [slim.borrow(t) for t in (product, bias, a, weight.t())]
    right = handles[3] if constant is None else constant.handle
    one, result = ctypes.c_double(1), ctypes.c_void_p()
    library = slim.library
    statuses = [
        library.aoti_torch_cpu_addmm_out(*handles[:3], right, one, one),
        library.aoti_torch_cpu__addmm_activation(
            *handles[1:3], right, one, one, ctypes.c_int32(gelu), ctypes.byref(result)
        ),
    ]
    actual = slim.read(result)
    for own in (*handles, result):
        library.aoti_torch_delete_tensor_object(own)
    if constant is not None:
        constant.close()
    library.aoti_slim_test_set_threads(1)
    assert statuses == [0, 0]
    exact = product.double()
    exact = torch.nn.functional.gelu(exact) if gelu else torch.relu(exact)
    bound = 2e-7 * product.abs() if gelu else torch.zeros(m, n)
    assert torch.equal(actual.isnan(), product.isnan())
    assert torch.all(((actual - exact).abs() <= bound) | product.isnan())


@settings(max_examples=40)
@given(
    level=st.sampled_from(cpu_levels()),
    rows=st.booleans(),
    batch=st.sampled_from([1, 2, 5]),
    m=st.sampled_from([1, 2, 14, 40]),
    k=st.sampled_from([1, 16, 70]),
    n=st.sampled_from([1, 15, 17, 64]),
    threads=st.sampled_from([1, 3]),
)
def test_a_packed_stack(level, rows, batch, m, k, n, threads) -> None:  # type: ignore[no-untyped-def]
    """Each matrix of a batched product has its own part of the packed copy."""
    set_level(level)
    slim.library.aoti_slim_test_set_threads(threads)
    torch.manual_seed(batch + m + k + n)
    weight = torch.randn(batch, k, n) if rows else torch.randn(batch, n, k)
    a, out = torch.randn(batch, m, k), torch.empty(batch, m, n)
    constant = Packed(weight, "gemm_f32_rows" if rows else "gemm_f32")
    handles = [slim.borrow(t) for t in (out, a)]
    status = slim.library.aoti_torch_cpu_bmm_out(*handles, constant.handle)
    for own in handles:
        slim.library.aoti_torch_delete_tensor_object(own)
    constant.close()
    slim.library.aoti_slim_test_set_threads(1)
    assert status == 0
    exact = a.double() @ (weight if rows else weight.mT).double()
    torch.testing.assert_close(out, exact.float(), rtol=1e-5, atol=1e-5)


def test_activation_of_special_values(level: str) -> None:
    """They are the bias of a product of zeros."""
    big = torch.finfo(torch.float32).max
    values = [0.0, -0.0, 1e-38, -1e-38, 5.4999, -5.4999, 5.5, -5.5, 9, -9, 1e30, -1e30, big, -big]
    bias = torch.tensor([*values, torch.inf, torch.nan])
    a, b = torch.zeros(3, 2), torch.zeros(2, len(bias))
    for gelu in (False, True):
        (result,) = slim.call("aoti_torch_cpu__addmm_activation", bias, a, b, 1, 1, gelu)
        # In float32, gelu of PyTorch is infinite for the largest number, and NaN for infinity.
        exact = torch._addmm_activation(bias.double(), a.double(), b.double(), use_gelu=gelu)
        harness.assert_equal(result, exact.float(), rtol=3e-7, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("k", [31, 64, 1100, 2048])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_activation_is_rounded_once(level: str, layout: str, k: int, dtype: torch.dtype) -> None:
    half_ulp = torch.finfo(dtype).eps / 2
    for m, n in itertools.product([1, 5, 17, 33], [1, 16, 31, 70]):
        a, b = matrix(m, k, dtype, layout, 1), matrix(k, n, dtype, "columns", 2)
        a = a / math.sqrt(k)
        for bias in (matrix(1, n, dtype, "rows", 3)[0], matrix(m, n, dtype, "rows", 3)):
            for gelu in (False, True):
                (result,) = slim.call("aoti_torch_cpu__addmm_activation", bias, a, b, 1, 1, gelu)
                exact = bias.double() + a.double() @ b.double()
                exact = functional.gelu(exact) if gelu else exact.relu()
                allowed = exact.abs() * half_ulp * 1.01 + 1e-5
                assert result.dtype == dtype
                assert bool(((result.double() - exact).abs() <= allowed).all()), (m, n, gelu)


def test_a_weight_that_was_packed_for_another_use_is_refused() -> None:
    constant = Packed(torch.randn(5, 5), "gemm_f32_rows")
    array, zero, two = ctypes.c_int64 * 2, ctypes.c_int64(0), ctypes.c_int64(2)
    view = ctypes.c_void_p()
    assert (
        slim.library.aoti_torch__reinterpret_tensor(
            constant.handle, two, array(5, 5), array(1, 5), zero, ctypes.byref(view)
        )
        == 0
    )
    handles = [slim.borrow(tensor) for tensor in (torch.empty(2, 5), torch.randn(2, 5))]
    assert slim.library.aoti_torch_cpu_mm_out(*handles, view) != 0
    assert b"packed" in slim.library.torch_exception_get_what_without_backtrace()
    for own in [*handles, view]:
        slim.library.aoti_torch_delete_tensor_object(own)
    constant.close()


@settings(max_examples=60)
@given(
    dtype=st.sampled_from([*FLOATS, torch.float64, torch.int32, torch.complex64]),
    batch=st.sampled_from([0, 1, 2, 5, 9]),
    m=st.sampled_from([0, 1, 4, 17, 40]),
    k=st.sampled_from([0, 1, 5, 64]),
    n=st.sampled_from([0, 1, 3, 16, 50]),
    transposed=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    expanded=st.booleans(),
    bias_shape=st.sampled_from(["", "n", "mn", "1mn", "b11", "bmn"]),
)
def test_bmm_and_baddbmm(  # type: ignore[no-untyped-def]
    dtype, batch, m, k, n, transposed, expanded, bias_shape
):
    slim.library.aoti_slim_test_set_threads(2)

    def stack(rows: int, columns: int, turned: bool, seed: int) -> torch.Tensor:
        if turned:
            return stack(columns, rows, False, seed).transpose(1, 2)
        return matrix(batch * rows, columns, dtype, "rows", seed).reshape(batch, rows, columns)

    a, b = stack(m, k, transposed[0], 1), stack(k, n, transposed[1], 2)
    if expanded and batch > 0:
        b = b[:1].expand(batch, -1, -1)
    out = stack(m, n, transposed[2], 3)
    slim.call("aoti_torch_cpu_bmm_out", out, a, b)
    rtol, atol = {torch.bfloat16: (2e-2, 2e-2), torch.float16: (2e-3, 4e-3)}.get(
        dtype, (1e-5, 1e-4)
    )
    harness.assert_equal(out, torch.bmm(a, b), rtol=rtol, atol=atol)
    sizes = {"b": batch, "m": m, "n": n, "1": 1}
    shape = [sizes[letter] for letter in bias_shape]
    bias = matrix(1, max(1, batch) * max(1, m) * max(1, n), dtype, "rows", 4).flatten()
    bias = bias[: torch.Size(shape).numel()].reshape(shape)
    slim.call("aoti_torch_cpu_baddbmm_out", out, bias, a, b, 3, 2)
    expected = torch.baddbmm(bias, a, b, beta=3, alpha=2)
    harness.assert_equal(out, expected, rtol=rtol, atol=4 * atol)
    slim.library.aoti_slim_test_set_threads(1)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64, torch.int64])
def test_addmv_addbmm_and_activation(dtype: torch.dtype) -> None:
    mat, vec = matrix(13, 40, dtype, "columns", 1), matrix(40, 3, dtype, "rows", 2)[:, 1]
    tolerance = {torch.bfloat16: (2e-2, 0.2), torch.float16: (2e-3, 2e-2)}.get(dtype, (1e-5, 1e-4))
    rtol, atol = tolerance
    for bias in (matrix(1, 13, dtype, "rows", 3)[0], torch.ones((), dtype=dtype)):
        (result,) = slim.call("aoti_torch_cpu_addmv", bias, mat, vec, 2, 3)
        expected = torch.addmv(bias, mat, vec, beta=2, alpha=3)
        harness.assert_equal(result, expected, rtol=rtol, atol=atol, strides=True)
    a, b = matrix(4 * 5, 6, dtype, "rows", 4).reshape(4, 5, 6), matrix(4 * 6, 7, dtype, "rows", 5)
    b = b.reshape(4, 6, 7)
    (result,) = slim.call("aoti_torch_cpu_addbmm", matrix(5, 7, dtype, "rows", 6), a, b, 2, 3)
    expected = torch.addbmm(matrix(5, 7, dtype, "rows", 6), a, b, beta=2, alpha=3)
    harness.assert_equal(result, expected, rtol=rtol, atol=4 * atol, strides=True)
    if dtype.is_floating_point:
        bias = matrix(1, 7, dtype, "rows", 6)[0]
        a, b = matrix(9, 6, dtype, "rows", 4), matrix(6, 7, dtype, "columns", 5)
        a[0, 0] = torch.nan
        for gelu in (False, True):
            (result,) = slim.call("aoti_torch_cpu__addmm_activation", bias, a, b, 1, 1, gelu)
            expected = torch._addmm_activation(bias, a, b, use_gelu=gelu)
            harness.assert_equal(result, expected, rtol=rtol, atol=atol, strides=True)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("shape", [(0, 8, 8), (17, 8, 8), (20, 33, 70)])
def test_int_mm(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    m, k, n = shape
    # Numbers up to 127 or 255, whose products need 32 bits and whose sign matters.
    a = (matrix(m, k, torch.int32, "rows", 1) * 15).to(dtype)
    b = matrix(k, n, torch.int8, "columns", 2) * 14
    out = torch.empty(m, n, dtype=torch.int32)
    slim.call("aoti_torch_cpu__int_mm_out", out, a, b)
    assert torch.equal(out, a.int() @ b.int())


@pytest.mark.parametrize(
    "shape",
    [
        *((1, 64, 16), (16, 4, 1), (35, 69, 41), (3, 1030, 17), (0, 8, 3)),
        # Panels that several units of columns share, and rows that are split over threads.
        *((38, 1030, 260), (100, 66, 17)),
    ],
)
def test_int_mm_with_a_weight(level: str, threads: None, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a = torch.randint(-128, 128, (m, k + 3), dtype=torch.int8)[:, :k]
    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    if m:
        a[0], weight[0] = -128, -128  # the largest sum
    out = torch.empty(m, n, dtype=torch.int32)
    slim.call("aoti_torch_cpu__int_mm_out", out, a, weight.t())
    expected = a.int() @ weight.int().t()
    assert torch.equal(out, expected)
    slim.library.aoti_slim_allow_vnni(0)
    slim.call("aoti_torch_cpu__int_mm_out", out.zero_(), a, weight.t())
    slim.library.aoti_slim_allow_vnni(1)
    assert torch.equal(out, expected)


def test_mm_plus_mm() -> None:
    a, b, c, d = torch.randn(20, 30), torch.randn(30, 40), torch.randn(20, 7), torch.randn(7, 40)
    out = torch.empty(20, 40)
    slim.call("aoti_torch__mm_plus_mm_out", out, a, b, c, d)
    assert_close_to_exact(out, torch.cat([a, c], 1), torch.cat([b, d], 0))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("mm_out", (torch.empty(2, 2), torch.empty(2, 3), torch.empty(4, 2)), "multiplied"),
        ("mm_out", (torch.empty(2, 3), torch.empty(2, 3), torch.empty(3, 2)), "out's sizes"),
        ("mm_out", (torch.empty(2, 2), torch.empty(2), torch.empty(2, 2)), "rank"),
        ("mm_out", (torch.empty(2, 2), torch.empty(2, 2), torch.empty(2, 2).half()), "dtypes"),
        ("mm_out", tuple(torch.ones(2, 2, dtype=torch.bool) for _ in range(3)), "bool"),
        ("bmm_out", tuple(torch.empty(n, 2, 2) for n in (2, 2, 3)), "batches"),
        ("_int_mm_out", tuple(torch.empty(2, 2) for _ in range(3)), "int8"),
    ],
)
def test_bad_arguments_are_refused(
    name: str, arguments: tuple[torch.Tensor, ...], message: str
) -> None:
    with pytest.raises(harness.OpError, match=message):
        slim.call(f"aoti_torch_cpu_{name}", *arguments)


def test_a_bias_that_does_not_fit_is_refused() -> None:
    two = torch.empty(2, 2)
    with pytest.raises(harness.OpError, match="broadcast"):
        slim.call("aoti_torch_cpu_addmm_out", two, torch.empty(3), two, two, 1, 1)
