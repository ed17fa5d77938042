"""LDL factors of symmetric and hermitian matrices against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import (
    DTYPES,
    SIZES,
    all_close,
    batches,
    call,
    close,
    dtypes,
    identity,
    layouts,
    matrices,
)
from torch import Tensor

aten = torch.ops.aten


def whole(a: Tensor, hermitian: bool) -> Tensor:
    """The matrix that the lower triangle stands for."""
    lower = a.tril()
    if hermitian and a.is_complex():
        lower.diagonal(0, -2, -1).imag.zero_()
    above = lower.tril(-1)
    return lower + (above.mH if hermitian else above.mT)


@settings(max_examples=60)
@given(
    size=st.sampled_from(SIZES),
    batch=batches,
    dtype=dtypes,
    layout=layouts,
    hermitian=st.booleans(),
    pairs=st.booleans(),
    sides=st.sampled_from([0, 1, 4]),
    less=st.integers(0, 3),
)
def test_ldl(
    size: int,
    batch: tuple[int, ...],
    dtype: torch.dtype,
    layout: str,
    hermitian: bool,
    pairs: bool,
    sides: int,
    less: int,
) -> None:
    a = matrices(batch, size, size, dtype, layout)
    # A diagonal of zeros needs blocks of two rows; another one takes few of them.
    a = a.tril(-1) + a.triu(1) if pairs else a + 2 * identity(size, a)
    if layout == "transposed":
        a = a.mT.contiguous().mT
    factors = call("linalg_ldl_factor_ex", a, hermitian, False, results=3)
    all_close(factors, aten.linalg_ldl_factor_ex.default(a, hermitian=hermitian))
    ldl, pivots, _ = factors
    b = matrices(batch[less:], size, sides, dtype, layout, seed=1)
    (solution,) = call("linalg_ldl_solve", ldl, pivots, b, hermitian)
    expected = aten.linalg_ldl_solve.default(ldl, pivots, b, hermitian=hermitian)
    assert solution.stride() == expected.stride()
    if sides and solution.numel():
        largest = solution.abs().max().item()
        error = (whole(a, hermitian) @ solution - b).abs().max().item()
        assert error <= 1e3 * size * torch.finfo(dtype).eps * max(largest, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_singular_matrices(dtype: torch.dtype, hermitian: bool) -> None:
    a = torch.stack([matrices((), 4, 4, dtype), torch.zeros(4, 4, dtype=dtype)])
    a[0, 2:], a[0, :, 2:] = 0, 0
    factors = call("linalg_ldl_factor_ex", a, hermitian, False, results=3)
    expected = aten.linalg_ldl_factor_ex.default(a, hermitian=hermitian)
    for ours, theirs in zip(factors, expected):
        close(ours, theirs)
    assert factors[2].tolist() == [3, 1]
    with pytest.raises(
        harness.OpError, match=r"ldl_factor_ex: \(batch element 0\): block 3 of D is zero"
    ):
        call("linalg_ldl_factor_ex", a, hermitian, True, results=3)
    a[0, 1, 1] = float("nan")
    call("linalg_ldl_factor_ex", a, hermitian, False, results=3)


def test_the_error_that_models_report() -> None:
    """torch.linalg.ldl_factor is exported as two operators."""
    with pytest.raises(harness.OpError, match=r"torch\.linalg\.ldl_factor: block 2 of D is zero"):
        info = torch.tensor(2, dtype=torch.int32)
        call("_linalg_check_errors", info, "torch.linalg.ldl_factor", True, results=0)


def test_ldl_factor_refuses() -> None:
    with pytest.raises(harness.OpError, match="matrices are of 3 by 4, must be square"):
        call("linalg_ldl_factor_ex", torch.zeros(3, 4), False, False, results=3)
    with pytest.raises(harness.OpError, match="the matrix is int32, must be float32"):
        a = torch.zeros(3, 3, dtype=torch.int32)
        call("linalg_ldl_factor_ex", a, False, False, results=3)


PIVOTS = r"the pivots can't belong to LD: they must be row numbers in 1\.\.3, and negative ones"


@pytest.mark.parametrize(
    ("pivots", "b", "text"),
    [
        ([0, 2, 3], torch.zeros(3, 2), PIVOTS),
        ([1, 2, 4], torch.zeros(3, 2), PIVOTS),
        ([1, 2, -3], torch.zeros(3, 2), PIVOTS),
        ([-1, -2, 3], torch.zeros(3, 2), PIVOTS),
        ([1, 2], torch.zeros(3, 2), "the sizes of the pivots do not match those of LD"),
        ([1, 2, 3], torch.zeros(4, 2), "right-hand sides of 4 by 2 do not match"),
        ([1, 2, 3], torch.zeros(3, 2).double(), "dtypes differ: float32 and float64"),
    ],
)
def test_ldl_solve_refuses(pivots: list[int], b: Tensor, text: str) -> None:
    with pytest.raises(harness.OpError, match=rf"linalg\.ldl_solve: .*{text}"):
        call("linalg_ldl_solve", torch.eye(3), torch.tensor(pivots, dtype=torch.int32), b, False)


def test_ldl_solve_refuses_pivots_of_another_dtype() -> None:
    with pytest.raises(harness.OpError, match="the pivots are int64, must be int32"):
        call("linalg_ldl_solve", torch.eye(2), torch.tensor([1, 2]), torch.zeros(2, 2), False)
