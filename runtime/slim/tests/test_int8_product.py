"""Products of int8 with scales, bias and activation (ops/int8_product.cc), against float64."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import amx
import cpu_levels
import harness
import pytest
import torch
from torch import Tensor

slim = harness.load()
ACTIVATIONS = [0, 1, 2]
NO_VNNI, AMX = 100, 101


@pytest.fixture(params=[*cpu_levels.known(), NO_VNNI, *([AMX] if amx.can_be_emulated() else [])])
def level(request: pytest.FixtureRequest) -> Iterator[None]:
    slim.library.aoti_slim_allow_vnni(int(request.param != NO_VNNI))
    if request.param == AMX:
        amx.emulate(slim)
    with cpu_levels.chosen(slim, -1 if request.param in (NO_VNNI, AMX) else request.param):
        yield
    slim.library.aoti_slim_allow_vnni(1)
    amx.restore(slim)


def product(
    a: Tensor, weight: Tensor, steps: Tensor, scales: Tensor, bias: Tensor | None, activation: int
) -> Tensor:
    handles = [None if t is None else slim.borrow(t) for t in (a, weight, steps, scales, bias)]
    return slim.result(
        slim.library.aoti_slim_int8_product,
        handles,
        *(handle if handle is not None else ctypes.c_void_p() for handle in handles),
        ctypes.c_int32(activation),
    )


def operands(m: int, k: int, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(m + k + n)
    a = torch.randint(-128, 128, (m, k), dtype=torch.int8)
    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    return a, weight, torch.rand(m, 1) / 400, torch.rand(n) / 40, torch.randn(n)


def expected(
    a: Tensor, weight: Tensor, steps: Tensor, scales: Tensor, bias: Tensor | None, activation: int
) -> Tensor:
    y = a.double() @ weight.double().t() * steps.double() * scales.double()
    y = y if bias is None else y + bias.double()
    if activation == 2:
        y = torch.nn.functional.gelu(y)
    return (y.relu() if activation == 1 else y).float()


# For a few rows, and for more than can be read as panels; columns and depths that are not whole
# vectors, tiles or panels.
@pytest.mark.parametrize(
    "shape",
    [
        *((0, 8, 3), (2, 8, 0), (3, 0, 5), (1, 64, 16), (5, 70, 37), (32, 65, 33)),
        *((33, 64, 64), (40, 69, 41), (38, 1030, 260), (100, 66, 17), (40, 8, 1700)),
    ],
)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("has_bias", [True, False])
def test_product(level: None, shape: tuple[int, int, int], activation: int, has_bias: bool) -> None:
    a, weight, steps, scales, bias = operands(*shape)
    given = (a, weight, steps, scales, bias if has_bias else None, activation)
    slim.library.aoti_slim_test_set_threads(1)
    actual = product(*given)
    harness.assert_equal(actual, expected(*given), rtol=1e-6, atol=1e-5)
    slim.library.aoti_slim_test_set_threads(3)
    harness.assert_equal(product(*given), actual, rtol=0, atol=0)
    slim.library.aoti_slim_test_set_threads(1)


def test_layouts() -> None:
    a, weight, steps, scales, bias = operands(40, 66, 20)
    given = (a.t().contiguous().t(), weight.t().contiguous().t(), steps, scales, bias, 0)
    harness.assert_equal(product(*given), expected(*given), rtol=1e-6, atol=1e-5)
    strided = (a, weight, steps.repeat(1, 2)[:, :1], scales.repeat(2, 1).t()[:, 0], bias, 0)
    harness.assert_equal(product(*strided), expected(*given), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nan_stays(activation: int) -> None:
    a, weight, steps, scales, bias = operands(40, 66, 20)
    steps[3], scales[19] = float("nan"), float("nan")
    actual = product(a, weight, steps, scales, bias, activation)
    assert actual[3].isnan().all()
    assert actual[:, 19].isnan().all()
    assert actual.isnan().sum() == 20 + 40 - 1


@pytest.mark.parametrize(
    ("place", "replacement", "message"),
    [
        (0, torch.ones(4, 9, dtype=torch.int8), "do not match"),
        (0, torch.ones(4, 8), "int8 matrix"),
        (1, torch.ones(3, 8, 1, dtype=torch.int8), "int8 matrix"),
        (2, torch.ones(3), "the steps must be 4"),
        (3, torch.ones(3).double(), "the scales must be 3"),
        (4, torch.ones(4), "the bias must be 3"),
        (5, 3, "no activation 3"),
    ],
)
def test_refused(place: int, replacement: Tensor | int, message: str) -> None:
    given: list[Tensor | int] = [*operands(4, 8, 3), 0]
    given[place] = replacement
    with pytest.raises(harness.OpError, match=message):
        product(*given)  # type: ignore[arg-type]
