"""Linear algebra against PyTorch: QR, eigenvalues, singular values, matrix exponentials."""

from __future__ import annotations

from typing import Any

import dispatcher
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
    sizes,
    slim,
    unitary,
)
from torch import Tensor

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")


@settings(max_examples=40)
@given(rows=sizes, columns=sizes, batch=batches, dtype=dtypes, layout=layouts)
def test_qr(
    rows: int, columns: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str
) -> None:
    a = matrices(batch, rows, columns, dtype, layout)
    for mode in ("reduced", "complete", "r"):
        q, r = call("linalg_qr", a, mode, results=2)
        expected_q, expected_r = torch.linalg.qr(a, mode)
        assert q.stride() == expected_q.stride()
        if mode != "r":
            close(q @ r, a, strides=False)
            unitary(q)
        # MKL gives another phase to the last row of large complex matrices.
        last = min(rows, columns) - 1 if dtype.is_complex and rows <= columns else rows
        close(r[..., :last, :], expected_r[..., :last, :], strides=False)
        close(r.abs(), expected_r.abs())
        if mode == "reduced":
            width = min(last, q.shape[-1])
            close(q[..., :width], expected_q[..., :width], strides=False)


def test_qr_of_tiny_huge_and_zero_columns() -> None:
    for scale in (1e-40, 1e-30, 1e30, 0.0):
        a = matrices((), 8, 5, torch.float32) * scale
        a[:, 2] = 0
        q, r = call("linalg_qr", a, "reduced", results=2)
        unitary(q)
        harness.assert_equal(q @ r, a, rtol=1e-3, atol=1e-6 * scale)
    # An upper triangular matrix is not reflected.
    a = -matrices((), 4, 4, torch.float64).triu()
    all_close(call("linalg_qr", a, "reduced", results=2), torch.linalg.qr(a))


@settings(max_examples=60)
@given(
    rows=sizes,
    columns=sizes,
    free=st.sampled_from([0, 1, 5, 40]),
    batch=batches,
    dtype=dtypes,
    layout=layouts,
    left=st.booleans(),
    adjoint=st.booleans(),
)
def test_householder_reflectors(
    rows: int,
    columns: int,
    free: int,
    batch: tuple[int, ...],
    dtype: torch.dtype,
    layout: str,
    left: bool,
    adjoint: bool,
) -> None:
    a = matrices(batch, rows, columns, dtype, layout)
    kept, tau = slim.call("aoti_torch_cpu_geqrf", a)
    expected, expected_tau = torch.geqrf(a)
    assert (kept.stride(), tau.stride()) == (expected.stride(), expected_tau.stride())
    # MKL gives another phase to the last row of large complex matrices.
    same = min(rows, columns) - (1 if dtype.is_complex and rows <= columns else 0)
    close(kept[..., :same], expected[..., :same], strides=False)
    close(tau[..., :same], expected_tau[..., :same], strides=False)
    other = matrices(batch, *((rows, free) if left else (free, rows)), dtype, layout, seed=1)
    (product,) = slim.call("aoti_torch_cpu_ormqr", kept, tau, other, int(left), int(adjoint))
    close(product, torch.ormqr(kept, tau, other, left, adjoint))
    if rows >= columns:
        # With fewer reflectors, and with strides.
        strided = kept if layout == "plain" else kept.contiguous()
        for some in (tau, tau[..., : columns // 2]):
            (q,) = call("linalg_householder_product", strided, some)
            close(q, torch.linalg.householder_product(strided, some))
        close(q.mH @ q, identity(columns, q), strides=False)


FLOATS = torch.zeros(5, 3), torch.zeros(3), torch.zeros(5, 2)


@pytest.mark.parametrize(
    ("a", "tau", "other", "left", "text"),
    [
        (torch.zeros(3), *FLOATS[1:], 1, "a tensor of rank 1 was given"),
        (FLOATS[0], torch.zeros(3).double(), FLOATS[2], 1, "float32 and float64 for tau"),
        (FLOATS[0], torch.zeros(1, 3), FLOATS[2], 1, "tau has rank 2, must have rank 1"),
        (torch.zeros(2, 5, 3), torch.zeros(1, 3), FLOATS[2], 1, "batch sizes of tau do not match"),
        (*FLOATS[:2], torch.zeros(5, 2).double(), 1, "float32 and float64 for other"),
        (*FLOATS[:2], torch.zeros(1, 5, 2), 1, "same number of dims and the same batch sizes"),
        (*FLOATS[:2], torch.zeros(4, 2), 1, "other has 4 rows, must .* has rows: 5"),
        (*FLOATS, 0, "other has 2 columns, must .* has rows: 5"),
        (FLOATS[0], torch.zeros(2), FLOATS[2], 1, "2 numbers are given for tau, must be 3 for"),
        (*(t.int() for t in FLOATS), 1, "the matrix is int32, must be float32"),
    ],
)
def test_ormqr_refuses(a: Tensor, tau: Tensor, other: Tensor, left: int, text: str) -> None:
    with pytest.raises(harness.OpError, match=f"ormqr: .*{text}"):
        slim.call("aoti_torch_cpu_ormqr", a, tau, other, left, 0)


def test_reflectors_that_are_refused() -> None:
    with pytest.raises(harness.OpError, match="geqrf: a tensor of rank 1 was given"):
        slim.call("aoti_torch_cpu_geqrf", torch.zeros(3))
    with pytest.raises(harness.OpError, match="geqrf: the matrix is int64, must be float32"):
        slim.call("aoti_torch_cpu_geqrf", torch.zeros(3, 3).long())
    for a, tau, text in (
        (torch.zeros(2, 3), torch.zeros(2), "must not have more columns than rows"),
        (torch.zeros(4, 3), torch.zeros(4), "4 numbers are given for tau, must be at most 3"),
    ):
        with pytest.raises(harness.OpError, match=rf"linalg\.householder_product: .*{text}"):
            call("linalg_householder_product", a, tau)


@settings(max_examples=40)
@given(size=sizes, batch=batches, dtype=dtypes, layout=layouts, triangle=st.sampled_from("LUlu"))
def test_eigh(
    size: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str, triangle: str
) -> None:
    x = matrices(batch, size, size, dtype, layout)
    a = x + x.mH
    # Only one triangle is used, and only the real part of the diagonal.
    given_a = a.tril() + x.triu(1) if triangle in "lL" else a.triu() + x.tril(-1)
    if layout == "transposed":
        given_a = given_a.mT.contiguous().mT
    expected, expected_vectors = aten._linalg_eigh.default(a, triangle.upper())
    values, vectors = call("_linalg_eigh", given_a, triangle, True, results=2)
    close(values, expected)
    assert vectors.stride() == expected_vectors.stride()
    unitary(vectors)
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, a, strides=False)
    all_close(
        call("_linalg_eigh", given_a, triangle, False, results=2),
        aten._linalg_eigh.default(a, triangle.upper(), False),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_eigh_of_repeated_values(dtype: torch.dtype, scale: float) -> None:
    q, _ = torch.linalg.qr(matrices((), 40, 40, dtype))
    wanted = torch.tensor([-2.0, 0.0, 0.0, 5.0]).repeat_interleave(10).to(q.real.dtype)
    a = (q * wanted) @ q.mH
    for matrix in (a, torch.zeros_like(a), -torch.ones_like(a), torch.eye(40, dtype=dtype)):
        values, vectors = call("_linalg_eigh", matrix * scale, "L", True, results=2)
        close(values / scale, torch.linalg.eigvalsh(matrix))
        unitary(vectors)
        close((vectors * (values / scale)) @ vectors.mH, matrix, strides=False)


def check_svd(a: Tensor) -> None:
    for full in (False, True):
        u, values, vh = call("_linalg_svd", a, full, True, None, results=3)
        expected = aten._linalg_svd.default(a, full, True)
        close(values, expected[1])
        for ours, theirs in ((u, expected[0]), (vh, expected[2])):
            assert ours.shape == theirs.shape
            assert ours.stride() == theirs.stride()
        unitary(u)
        unitary(vh.mH)
        count = values.shape[-1]
        product = (u[..., :count] * values.unsqueeze(-2)) @ vh[..., :count, :]
        close(product, a, strides=False)
    got = call("_linalg_svd", a, False, False, None, results=3)
    all_close(got, aten._linalg_svd.default(a, False, False))


@settings(max_examples=40)
@given(
    rows=st.sampled_from([n for n in SIZES if n < 100]),
    columns=sizes,
    batch=st.sampled_from([(), (0,), (3,)]),
    dtype=dtypes,
    layout=layouts,
)
def test_svd(
    rows: int, columns: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str
) -> None:
    check_svd(matrices(batch, rows, columns, dtype, layout))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(12, 12), (30, 12), (12, 30)])
def test_svd_of_low_rank(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    a = matrices((), shape[0], 3, dtype) @ matrices((), 3, shape[1], dtype, seed=1)
    check_svd(a)
    check_svd(torch.zeros_like(a))
    check_svd(torch.ones_like(a))
    a = a.clone()
    a[:, 1] = 0
    a[2] = 0
    check_svd(a)
    values = call("_linalg_svd", a * 1e30, False, True, dispatcher.Some("gesvd"), results=3)[1]
    close(values / 1e30, torch.linalg.svdvals(a))


@settings(max_examples=40)
@given(
    size=sizes,
    batch=batches,
    dtype=dtypes,
    layout=layouts,
    norm=st.sampled_from([0.0, 1e-3, 0.1, 1.0, 4.0]),
)
def test_matrix_exp(
    size: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str, norm: float
) -> None:
    a = matrices(batch, size, size, dtype, layout) * (norm / max(size, 1) ** 0.5)
    (got,) = call("linalg_matrix_exp", a)
    close(got, torch.linalg.matrix_exp(a))


def test_matrix_exp_is_exact() -> None:
    values = torch.tensor([-30.0, -1.0, 0.0, 1e-9, 3.0, 20.0], dtype=torch.float64)
    (got,) = call("linalg_matrix_exp", values.diag())
    harness.assert_equal(got, values.exp().diag(), rtol=1e-13, atol=0)
    turn = torch.tensor([[0.0, 3.0], [-3.0, 0.0]], dtype=torch.float64)
    (got,) = call("linalg_matrix_exp", turn)
    cosine, sine = torch.cos(turn[0, 1]), torch.sin(turn[0, 1])
    expected = torch.stack((torch.stack((cosine, sine)), torch.stack((-sine, cosine))))
    harness.assert_equal(got, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_numbers_that_are_not_finite(dtype: torch.dtype, value: float, size: int) -> None:
    """Nothing hangs or crashes; the iterative decompositions refuse such matrices."""
    a = matrices((), size, size, dtype).clone()
    a[size // 2, 0] = value
    for name in ("eigh", "svd"):
        arguments: tuple[Any, ...] = ("L", True) if name == "eigh" else (False, True, None)
        with pytest.raises(harness.OpError, match=rf"linalg\.{name}: .*not finite"):
            call(f"_linalg_{name}", a, *arguments, results=3 if name == "svd" else 2)
    (got,) = call("linalg_matrix_exp", a)
    assert got.isnan().all()
    for name, arguments, results in (
        ("linalg_cholesky_ex", (False, False), 2),
        ("linalg_lu_factor_ex", (True, False), 3),
        ("linalg_inv_ex", (False,), 2),
        ("linalg_qr", ("complete",), 2),
        ("_linalg_det", (), 3),
        ("_linalg_slogdet", (), 4),
    ):
        call(name, a, *arguments, results=results)
    (got,) = call("_linalg_det", torch.full((size, size), NAN, dtype=dtype), results=3)[:1]
    assert got.isnan()
