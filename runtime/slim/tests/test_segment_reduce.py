"""segment_reduce against PyTorch."""

from __future__ import annotations

import pytest
import torch
from harness import OpError, assert_equal, load
from torch import Tensor

slim = load()
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
REDUCTIONS = ["sum", "prod", "mean", "max", "min", "amax", "amin"]


def call(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    name = "aoti_torch_cpu_segment_reduce"
    return slim.call(name, data, reduce, lengths, indices, offsets, axis, unsafe, initial)[0]


def compare(data: Tensor, reduce: str, **options: object) -> None:
    expected = torch.segment_reduce(data, reduce, **options)  # type: ignore[arg-type]
    assert_equal(call(data, reduce, **options), expected, rtol=0, atol=0, strides=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("initial", [None, 2.5])
def test_like_pytorch(
    dtype: torch.dtype, index: torch.dtype, reduce: str, initial: float | None
) -> None:
    plain = torch.randn(6, 3, 2).to(dtype)
    plain[4, 1, 1] = float("nan")
    strided = torch.randn(12, 3, 4).to(dtype)[::2, :, 1::2]
    for data in (plain, plain.transpose(1, 2), strided, plain[:, 0, 0]):
        compare(data, reduce, lengths=torch.tensor([2, 0, 4], dtype=index), initial=initial)
        # PyTorch reads the numbers without their strides.
        offsets = torch.tensor([1, 1, 3, 5], dtype=index)
        compare(data, reduce, offsets=offsets, initial=initial)
    spread = torch.tensor([2, 9, 0, 9, 4, 9], dtype=index)[::2]
    assert_equal(call(plain, reduce, lengths=spread),
                 call(plain, reduce, lengths=spread.contiguous()))  # fmt: skip


@pytest.mark.parametrize("axis", [1, -1])
def test_another_dim(axis: int) -> None:
    data = torch.randn(5, 4)
    compare(data, "mean", lengths=torch.tensor([[1, 3], [2, 2], [0, 4], [4, 0], [3, 1]]), axis=axis)
    compare(data, "amax", offsets=torch.tensor([[0, 1, 2]] * 5), axis=axis)


def test_many_segments_on_threads() -> None:
    compare(torch.randn(90000, 3), "sum", lengths=torch.full((30000,), 3))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_empty(reduce: str) -> None:
    compare(torch.zeros(0, 3), reduce, lengths=torch.tensor([0, 0]))
    compare(torch.zeros(3, 0), reduce, lengths=torch.tensor([1, 2]))
    compare(torch.zeros(3, 2), reduce, offsets=torch.tensor([1]))
    compare(torch.zeros(3), reduce, lengths=torch.tensor([], dtype=torch.int64), unsafe=True)


def test_unsafe_lengths_may_leave_elements_out() -> None:
    compare(torch.randn(6, 3), "sum", lengths=torch.tensor([1, 2]), unsafe=True)


def test_offsets_come_before_lengths() -> None:
    offsets = torch.tensor([0, 6])
    compare(torch.randn(6, 3), "sum", lengths=torch.tensor([1, 5]), offsets=offsets)


def test_errors() -> None:
    data, lengths = torch.ones(6, 3), torch.tensor([2, 4])
    long = torch.tensor([2, 5])
    for message, reduce, options in [
        ('reduce is "add", must be sum, prod, mean, amax or amin', "add", {"lengths": lengths}),
        ("needs lengths or offsets, and has neither", "sum", {}),
        ("indices are not supported, as in PyTorch", "sum", {"indices": lengths}),
        ("lengths[1] is -1, must not be negative", "sum", {"lengths": torch.tensor([7, -1])}),
        ("the sum of the lengths is 7, must be the size of the dim, 6", "sum", {"lengths": long}),
        ("the sum of the lengths is 7, must be the size of the dim, 6", "sum",
         {"lengths": long, "unsafe": True}),
        ("the sum of the lengths is 2, must be the size of the dim, 6", "sum",
         {"lengths": lengths[:1]}),
        ("offsets[1] is 1, must be in 2..6", "sum", {"offsets": torch.tensor([2, 1])}),
        ("offsets[1] is 7, must be in 0..6", "sum", {"offsets": torch.tensor([0, 7])}),
        ("offsets is empty", "sum", {"offsets": lengths[:0]}),
        ("lengths has 1 dims, must have 2, of which all but the last have the sizes of data",
         "sum", {"lengths": lengths, "axis": 1}),
    ]:  # fmt: skip
        with pytest.raises(OpError) as error:
            call(data, reduce, **options)  # type: ignore[arg-type]
        assert str(error.value) == f"segment_reduce: {message}"
    with pytest.raises(OpError, match="indices are float32, must be int32 or int64"):
        call(data, "sum", lengths=lengths.float())
    with pytest.raises(OpError, match="int64 is not supported here, must be a floating-point one"):
        call(data.long(), "sum", lengths=lengths)
