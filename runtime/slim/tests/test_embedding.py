"""embedding_bag against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from by_name import call_by_name
from harness import OpError, assert_equal, load
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

slim = load()
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 1e-2, torch.float16: 2e-3}
LEVELS = {"AVX512": [0, 1, 2], "AVX2": [0, 1], "DEFAULT": [0]}.get(
    torch.backends.cpu.get_cpu_capability(), [3]
)


def arguments(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int = 0,
    scale: Tensor | None = None,
    last: bool = False,
    padding: int = -1,
) -> tuple[Any, ...]:
    return weight, indices, offsets, False, mode, False, scale, last, padding


def check(name: str, *args: Any) -> None:
    expected = getattr(torch.ops.aten, name).default(*args)
    actual = slim.call(f"aoti_torch_cpu_{name}", *args)
    tolerance = TOLERANCE[args[0].dtype]
    assert_equal(actual[0], expected[0], rtol=tolerance, atol=tolerance, strides=True)
    for own, theirs in zip(actual[1:], expected[1:], strict=True):
        if args[4] == 0:  # PyTorch does not initialise some of these
            assert own.shape == theirs.shape and own.dtype == theirs.dtype
        else:
            assert_equal(own, theirs, strides=True)
    if args[4] == 0:
        assert_equal(actual[1], expected[1])


@settings(max_examples=120)
@given(data=st.data())
def test_like_pytorch(data: st.DataObject) -> None:
    draw = data.draw
    slim.library.aoti_slim_set_cpu_level(draw(st.sampled_from(LEVELS)))
    torch.manual_seed(draw(st.integers(0, 1000)))
    dtype = draw(st.sampled_from(DTYPES))
    rows, size = draw(st.integers(1, 12)), draw(st.sampled_from([1, 3, 16, 37, 64]))
    count = draw(st.integers(0, 40))
    bags = draw(st.integers(1, 8))
    mode = draw(st.integers(0, 2))
    weight = torch.randn(rows, size).to(dtype)
    if draw(st.booleans()):
        weight = weight.t().contiguous().t()
    indices = torch.randint(rows, (count,))
    offsets = torch.cat([torch.zeros(1).long(), torch.randint(count + 1, (bags - 1,)).sort()[0]])
    if draw(st.booleans()):
        indices = indices.int()
    if draw(st.booleans()):
        offsets = offsets.int()
    scale = torch.randn(count).to(dtype) if mode == 0 and draw(st.booleans()) else None
    if scale is not None and draw(st.booleans()):
        scale = torch.randn(count, 2).to(dtype)[:, 0]
    last = bags > 1 and draw(st.booleans())
    padding = draw(st.sampled_from([-1, 0, rows - 1]))
    name = draw(st.sampled_from(["_embedding_bag", "_embedding_bag_forward_only"]))
    check(name, *arguments(weight, indices, offsets, mode, scale, last, padding))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_empty(mode: int) -> None:
    weight, none = torch.randn(4, 3), torch.zeros(0, dtype=torch.long)
    check("_embedding_bag", *arguments(weight, none, torch.tensor([0, 0]), mode))
    check("_embedding_bag", *arguments(weight, none, none, mode))


def test_nan_is_a_maximum_only_where_it_comes_first() -> None:
    weight = torch.tensor([[1.0, 5.0], [math.nan, 2.0], [3.0, math.nan]])
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        check("_embedding_bag", *arguments(weight, torch.tensor(order), torch.tensor([0]), 2))


INDICES, OFFSETS = torch.tensor([1, 2, 3]), torch.tensor([0, 2])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": torch.tensor([1, 10, 3])}, r"indices\[1\] is 10, must be in 0\.\.9"),
        ({"indices": torch.tensor([1, 2, -1])}, r"indices\[2\] is -1, must be in 0\.\.9"),
        ({"offsets": torch.tensor([1, 2])}, r"offsets\[0\] is 1, must be in 0\.\.0"),
        ({"offsets": torch.tensor([0, 4])}, r"offsets\[1\] is 4, must be in 0\.\.3"),
        ({"offsets": torch.tensor([0, 3, 1])}, r"offsets\[2\] is 1, must be in 3\.\.3"),
        ({"indices": INDICES.float()}, "must be int32 or int64"),
        ({"weight": torch.ones(10)}, "must have 2"),
        ({"weight": torch.ones(10, 2).int()}, "must be a floating-point dtype"),
        ({"mode": 3}, "mode is 3"),
        ({"mode": 1, "scale": torch.ones(3)}, "are for mode 0"),
        ({"scale": torch.ones(4)}, "4 per_sample_weights for 3 indices"),
        ({"scale": torch.ones(3).double()}, "float64, must be float32"),
        ({"offsets": OFFSETS[:0], "last": True}, "there are no offsets"),
    ],
)
def test_errors(changed: dict[str, Any], message: str) -> None:
    good = {"weight": torch.ones(10, 2), "indices": INDICES, "offsets": OFFSETS}
    with pytest.raises(OpError, match=message):
        slim.call("aoti_torch_cpu__embedding_bag", *arguments(**{**good, **changed}))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, 0.5, math.inf])
def test_renorm(dtype: torch.dtype, order: float) -> None:
    for weight in (torch.randn(9, 17).to(dtype), torch.randn(17, 9).to(dtype).t()):
        for indices in (torch.tensor([[1, 2], [8, 1]]), torch.zeros(0, dtype=torch.int32)):
            expected = torch.ops.aten.embedding_renorm(weight, indices, 1.5, order)
            own = call_by_name(slim, "embedding_renorm", weight, indices, 1.5, order)
            tolerance = TOLERANCE[dtype]
            assert_equal(own, expected, rtol=tolerance, atol=tolerance, strides=True)


def test_errors_of_renorm() -> None:
    weight = torch.ones(3, 2)
    with pytest.raises(OpError, match=r"indices\[1\] is 3, must be in 0\.\.2"):
        call_by_name(slim, "embedding_renorm", weight, torch.tensor([1, 3]), 1.0, 2.0)
    with pytest.raises(OpError, match="must have 2"):
        call_by_name(slim, "embedding_renorm", weight[0], torch.tensor([1]), 1.0, 2.0)
