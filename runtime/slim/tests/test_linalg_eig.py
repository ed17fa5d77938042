"""Eigenvalues of matrices without symmetry against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import (
    DTYPES,
    SIZES,
    batches,
    call,
    close,
    dtypes,
    identity,
    layouts,
    matrices,
)
from torch import Tensor

WIDE = torch.complex128


def unit(a: Tensor) -> float:
    """The relative error of one operation in a's dtype."""
    return torch.finfo(a.dtype).eps


def check_eig(a: Tensor, *, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    """Compares the eigenvalues as a set, and the vectors with their definition, which does not
    determine the order. spread: how much eigenvalues depend on rounding errors.
    """
    values, vectors = call("linalg_eig", a, results=2)
    expected, expected_vectors = torch.linalg.eig(a)
    for ours, theirs in ((values, expected), (vectors, expected_vectors)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.stride() == theirs.stride()
    if not a.numel():
        return values, vectors
    size = a.shape[-1]
    largest = max(a.abs().max().item(), torch.finfo(a.dtype).tiny)
    allowed = 50 * size * unit(a)
    wide, wide_vectors, wide_values = (x.to(WIDE) for x in (a, vectors, values))
    error = (wide @ wide_vectors - wide_vectors * wide_values.unsqueeze(-2)).abs().max().item()
    assert error <= allowed * largest, f"{error} is more than {allowed} * {largest}"
    assert (wide_vectors.norm(dim=-2) - 1).abs().max() < allowed
    # The largest number of each vector is real; several may be equally large.
    sizes = wide_vectors.abs()
    beside = wide_vectors.imag.abs().masked_fill(sizes < sizes.amax(-2, keepdim=True) * 0.999, 1)
    assert beside.amin(-2).max() < allowed
    # For each eigenvalue there is one of PyTorch's nearby, and the other way round.
    distance = (wide_values.unsqueeze(-1) - expected.to(WIDE).unsqueeze(-2)).abs() / largest
    for dim in (-1, -2):
        assert distance.amin(dim).max() <= 100 * allowed * spread
    close(values.sum(-1), a.diagonal(0, -2, -1).sum(-1).to(values.dtype), strides=False)
    if not a.is_complex():
        pairs = values[values.imag != 0]
        assert torch.equal(pairs[0::2], pairs[1::2].conj())
        assert (pairs[0::2].imag > 0).all()
        assert (vectors.imag.abs().amax(-2)[values.imag == 0] == 0).all()
    return values, vectors


@settings(max_examples=40)
@given(
    size=st.sampled_from([n for n in SIZES if n < 100]),
    batch=batches,
    dtype=dtypes,
    layout=layouts,
)
def test_eig(size: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str) -> None:
    check_eig(matrices(batch, size, size, dtype, layout))


def test_eig_of_a_large_matrix() -> None:
    check_eig(matrices((), 150, 150, torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_order_is_that_of_lapack(dtype: torch.dtype) -> None:
    """Nothing promises it, but programs that take the first vector get the same one, up to its
    sign, in which CPUs differ.
    """
    a = matrices((5,), 3, 3, dtype)
    values, vectors = call("linalg_eig", a, results=2)
    expected, expected_vectors = torch.linalg.eig(a)
    close(values, expected)
    assert vectors.stride() == expected_vectors.stride()
    signs = (vectors.conj() * expected_vectors).sum(-2, keepdim=True).real.sign()
    close(vectors * signs, expected_vectors, strides=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_matrices(dtype: torch.dtype) -> None:
    n = 20
    x = matrices((), n, n, dtype)
    one = identity(n, x)
    shifted = torch.diag(torch.ones(n - 1, dtype=dtype), 1)
    check_eig(torch.zeros_like(x))
    check_eig(one)
    check_eig(one.flip(-1))
    check_eig(one.roll(1, 0))
    check_eig(x + x.mH)
    check_eig(x - x.mH)
    check_eig(x[:, :3] @ x[:3])
    check_eig(torch.linalg.qr(x).Q)
    # Eigenvalues of triangular matrices are their diagonals, exactly.
    for triangle in (x.triu(), x.tril(), shifted, 2 * one + shifted.mT):
        values, _ = check_eig(triangle)
        wanted = triangle.diagonal().to(values.dtype)
        assert sorted(map(str, values.tolist())) == sorted(map(str, wanted.tolist()))
    x[5:, :5] = 0
    check_eig(x)
    x[7] = 0
    check_eig(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e15, 1e30])
def test_small_and_large_numbers(dtype: torch.dtype, scale: float) -> None:
    a = matrices((), 12, 12, dtype) * scale
    check_eig(a)
    rows = torch.logspace(-4, 4, 12, dtype=torch.float64).to(dtype)
    check_eig(rows.unsqueeze(1) * a / rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("small", [0.0, 1e-12, -1e-12, 1e-5, -1e-5, 1.0, -1.0])
def test_two_rows(dtype: torch.dtype, small: float) -> None:
    """Nearly equal eigenvalues: they change by the square root of a change of the matrix."""
    for first, second in (((1, 1), (small, 1)), ((1, small), (1, 1)), ((0, 1), (small, 2))):
        a = torch.tensor([first, second], dtype=torch.float64).to(dtype)
        check_eig(a, spread=unit(a) ** -0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite(dtype: torch.dtype, value: float) -> None:
    for size in (1, 3, 40):
        a = torch.stack([matrices((), size, size, dtype)] * 2)
        a[1, size // 2, 0] = value
        with pytest.raises(harness.OpError, match=r"linalg\.eig: \(batch element 1\).*not finite"):
            call("linalg_eig", a, results=2)


@pytest.mark.parametrize(
    ("a", "text"),
    [
        (torch.zeros(3, 4), r"linalg\.eig: the matrices are of 3 by 4, must be square"),
        (torch.zeros(3), r"linalg\.eig: a tensor of rank 1 was given"),
        (torch.zeros(3, 3, dtype=torch.int32), r"linalg\.eig: the matrix is int32, must be"),
        (torch.zeros(3, 3, dtype=torch.bfloat16), r"linalg\.eig: the matrix is bfloat16, must be"),
    ],
)
def test_eig_refuses(a: Tensor, text: str) -> None:
    with pytest.raises(harness.OpError, match=text):
        call("linalg_eig", a, results=2)
