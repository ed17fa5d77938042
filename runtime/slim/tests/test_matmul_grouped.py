"""_grouped_mm against PyTorch."""

from __future__ import annotations

import pytest
import torch
from harness import OpError, assert_equal, load
from torch import Tensor

slim = load()
NAME = "aoti_torch_cpu__grouped_mm"
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def call(a: Tensor, b: Tensor, offs: Tensor | None = None) -> Tensor:
    return slim.call(NAME, a, b, offs, None, None)[0]


def compare(a: Tensor, b: Tensor, offs: Tensor | None = None) -> None:
    expected = torch.ops.aten._grouped_mm(a, b, offs)
    tolerance = TOLERANCE[a.dtype]
    # PyTorch's own sums of 16-bit products differ by a rounding.
    assert_equal(call(a, b, offs), expected, rtol=tolerance, atol=2 * tolerance, strides=True)


def ends(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def transposed(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_like_pytorch(dtype: torch.dtype) -> None:
    def matrix(*shape: int) -> Tensor:
        return (torch.randn(shape) / 2).to(dtype)

    for change in (lambda x: x, transposed):
        compare(matrix(16, 16), change(matrix(3, 16, 24)), ends(4, 4, 16))
        compare(change(matrix(3, 16, 16)), matrix(16, 24), ends(8, 8, 24))
        compare(change(matrix(16, 24)), matrix(24, 32), ends(8, 8, 24))
        compare(matrix(3, 16, 8), change(matrix(3, 8, 16)))
    compare(matrix(16, 16)[::2], matrix(3, 32, 24)[:, ::2], ends(1, 3, 8))


def test_rows_of_the_result_are_aligned() -> None:
    a, b = torch.randn(8, 16).bfloat16(), torch.randn(2, 16, 24).bfloat16()
    compare(a, b[:, :, :20], ends(3, 8))
    assert call(a, b[:, :, :20], ends(3, 8)).stride() == (24, 1)


def test_what_is_in_no_group_is_zero() -> None:
    a, b = torch.randn(8, 16), torch.randn(2, 16, 8)
    rows = call(a, b, ends(2, 5))
    assert rows[:5].ne(0).any() and rows[5:].eq(0).all()
    columns = call(b.mT.contiguous(), a.mT.contiguous(), ends(2, 5))
    assert columns[:, :5].ne(0).any() and columns[:, 5:].eq(0).all()
    assert call(a, b[:0], ends()).eq(0).all()


def test_empty() -> None:
    a, b = torch.randn(8, 16), torch.randn(2, 16, 8)
    compare(a[:0], b, ends(0, 0))
    compare(b[:0].mT, b[:0])


def test_errors() -> None:
    a, b, offs = torch.ones(8, 16), torch.ones(2, 16, 8), ends(3, 8)
    for message, left, right, given in [
        ("a tensor of rank 1 was given, 2 or 3 is needed", a[0], b, offs),
        ("not supported for tensors of float64, must be float32, bfloat16 or float16", a.double(),
         b.double(), offs),
        ("dtypes differ: float32 and bfloat16", a, b.bfloat16(), offs),
        ("needs offs if a tensor has rank 2, and none if both have rank 3", a, b, None),
        ("needs offs if a tensor has rank 2, and none if both have rank 3", b.mT, b, offs),
        ("offs must have 1 dim, and be int32", a, b, offs.long()),
        ("offs must have 1 dim, and be int32", a, b, offs[None]),
        ("matrices of sizes [8, 8] and [16, 8] cannot be multiplied", a[:, :8], b, offs),
        ("a batch of 2 matrices for 3 groups", a, b, ends(1, 2, 8)),
        ("a batch of 1 matrices for 2 groups", b.mT, b[:1], None),
        ("offs[1] is 9, must be in 3..8", a, b, ends(3, 9)),
        ("offs[1] is 2, must be in 3..8", a, b, ends(3, 2)),
    ]:  # fmt: skip
        with pytest.raises(OpError) as error:
            call(left, right, given)
        assert str(error.value) == f"_grouped_mm: {message}"
    with pytest.raises(OpError, match="_grouped_mm: a bias is not supported, as in PyTorch"):
        slim.call(NAME, a, b, offs, torch.ones(8), None)
    with pytest.raises(OpError, match="out_dtype must be the dtype of the first tensor, float32"):
        slim.call(NAME, a, b, offs, None, torch.bfloat16)
