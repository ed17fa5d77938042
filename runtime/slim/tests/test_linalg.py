"""Linear algebra against PyTorch: factors, solutions, determinants, products, errors."""

from __future__ import annotations

from typing import Any

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import (
    DTYPES,
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
)
from torch import Tensor

aten = torch.ops.aten
NAN = float("nan")


@settings(max_examples=40)
@given(size=sizes, batch=batches, dtype=dtypes, layout=layouts, upper=st.booleans())
def test_cholesky(
    size: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str, upper: bool
) -> None:
    x = matrices(batch, size, size, dtype, layout)
    a = x @ x.mH + identity(size, x)
    if layout == "transposed":
        a = a.mT.contiguous().mT
    expected = aten.linalg_cholesky_ex.default(a, upper=upper)
    # Only one triangle is used.
    a = a.triu() + x.tril(-1) if upper else a.tril() + x.triu(1)
    all_close(call("linalg_cholesky_ex", a, upper, False, results=2), expected)
    factor = expected[0]
    (inverse,) = slim.call("aoti_torch_cpu_cholesky_inverse", factor, int(upper))
    close(inverse, torch.cholesky_inverse(factor, upper))
    b = matrices(batch[1:], size, 3, dtype, layout, seed=1)
    (solution,) = slim.call("aoti_torch_cpu_cholesky_solve", b, factor, int(upper))
    close(solution, torch.cholesky_solve(b, factor, upper))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [3, 40, 70])
@pytest.mark.parametrize("upper", [False, True])
def test_not_positive_definite(dtype: torch.dtype, size: int, upper: bool) -> None:
    a = identity(size, torch.zeros(4, size, size, dtype=dtype)).clone()
    a[1, size - 1, size - 1] = -1
    a[2, 1, 1] = NAN
    a[3, 0, 0] = 0
    _, info = call("linalg_cholesky_ex", a, upper, False, results=2)
    close(info, aten.linalg_cholesky_ex.default(a, upper=upper)[1])
    assert info.tolist() == [0, size, 2, 1]
    with pytest.raises(
        harness.OpError, match=rf"\(batch element 1\).*leading minor of order {size} "
    ):
        call("linalg_cholesky_ex", a, upper, True, results=2)


@settings(max_examples=40)
@given(rows=sizes, columns=sizes, square=st.booleans(), batch=batches, dtype=dtypes, layout=layouts)
def test_lu(
    rows: int, columns: int, square: bool, batch: tuple[int, ...], dtype: torch.dtype, layout: str
) -> None:
    a = matrices(batch, rows, rows if square else columns, dtype, layout)
    lu, pivots, info = call("linalg_lu_factor_ex", a, True, False, results=3)
    all_close((lu, pivots, info), aten.linalg_lu_factor_ex.default(a))
    all_close(call("linalg_lu", a, True, results=3), aten.linalg_lu.default(a))
    for data, permutation in ((1, 1), (0, 1), (1, 0)):
        got = slim.call("aoti_torch_cpu_lu_unpack", lu, pivots, data, permutation)
        all_close(got, torch.lu_unpack(lu, pivots, bool(data), bool(permutation)))


@settings(max_examples=40)
@given(size=sizes, batch=batches, dtype=dtypes, layout=layouts)
def test_determinant_and_inverse(
    size: int, batch: tuple[int, ...], dtype: torch.dtype, layout: str
) -> None:
    a = matrices(batch, size, size, dtype, layout) / (2 * max(size, 1) ** 0.5)
    a = a + identity(size, a).flip(-1)
    all_close(call("_linalg_det", a, results=3), aten._linalg_det.default(a))
    all_close(call("_linalg_slogdet", a, results=4), aten._linalg_slogdet.default(a))
    all_close(call("linalg_inv_ex", a, False, results=2), aten.linalg_inv_ex.default(a))


@settings(max_examples=50)
@given(
    size=sizes,
    sides=st.sampled_from([0, 1, 5, 40]),
    batch=batches,
    less=st.integers(0, 3),
    dtype=dtypes,
    layout=layouts,
    left=st.booleans(),
    adjoint=st.booleans(),
)
def test_solve(
    size: int,
    sides: int,
    batch: tuple[int, ...],
    less: int,
    dtype: torch.dtype,
    layout: str,
    left: bool,
    adjoint: bool,
) -> None:
    a = matrices(batch, size, size, dtype, layout)
    a = a + 2 * size**0.5 * identity(size, a)
    b = matrices(batch[less:], *((size, sides) if left else (sides, size)), dtype, layout, seed=1)
    if b.shape == a.shape[:-1]:
        return  # B would be a vector
    expected = aten._linalg_solve_ex.default(a, b, left=left)
    all_close(call("_linalg_solve_ex", a, b, left, False, results=4), expected)
    if len(batch) == 3:
        expected = aten._linalg_solve_ex.default(a[0, 0, 0], b, left=left)
        all_close(call("_linalg_solve_ex", a[0, 0, 0], b, left, False, results=4), expected)
    lu, pivots, _ = aten.linalg_lu_factor_ex.default(a)
    solution = aten.linalg_lu_solve.default(lu, pivots, b, left=left, adjoint=adjoint)
    all_close(call("linalg_lu_solve", lu, pivots, b, left, adjoint), [solution])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,), (3, 2)])
def test_solve_for_vectors(dtype: torch.dtype, batch: tuple[int, ...]) -> None:
    a = matrices(batch, 5, 5, dtype)
    for b in (matrices(batch, 1, 5, dtype, seed=1).squeeze(-2), torch.ones(5, dtype=dtype)):
        expected = aten._linalg_solve_ex.default(a, b)
        all_close(call("_linalg_solve_ex", a, b, True, False, results=4), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 3, 70])
def test_singular(dtype: torch.dtype, size: int) -> None:
    a = matrices((3,), size, size, dtype).clone()
    a[1] = 0
    a[2, :, size // 2] = 0
    for name, flags, results in (
        ("linalg_lu_factor_ex", (True, False), 3),
        ("linalg_inv_ex", (False,), 2),
    ):
        got = call(name, a, *flags, results=results)
        assert got[-1].tolist() == [0, 1, size // 2 + 1]
        close(got[-1], getattr(aten, name).default(a)[-1])
    all_close(call("_linalg_det", a, results=3), aten._linalg_det.default(a))
    all_close(call("_linalg_slogdet", a, results=4), aten._linalg_slogdet.default(a))
    got = call("_linalg_solve_ex", a, a, True, False, results=4)
    close(got[3], aten._linalg_solve_ex.default(a, a)[3])
    failing: list[tuple[str, tuple[Any, ...], int]] = [
        ("linalg_lu_factor_ex", (a, True, True), 3),
        ("linalg_inv_ex", (a, True), 2),
        ("_linalg_solve_ex", (a, a, True, True), 4),
    ]
    for name, arguments, results in failing:
        with pytest.raises(harness.OpError, match=r"\(batch element 1\): .*(zero|singular)"):
            call(name, *arguments, results=results)


@settings(max_examples=50)
@given(
    size=sizes,
    sides=st.sampled_from([0, 1, 5, 40]),
    batch=batches,
    less=st.integers(0, 3),
    dtype=dtypes,
    layout=layouts,
    upper=st.booleans(),
    left=st.booleans(),
    ones=st.booleans(),
)
def test_triangular(
    size: int,
    sides: int,
    batch: tuple[int, ...],
    less: int,
    dtype: torch.dtype,
    layout: str,
    upper: bool,
    left: bool,
    ones: bool,
) -> None:
    # The other triangle is random too.
    a = matrices(batch, size, size, dtype, layout) / (size + 1)
    a = a if ones else a + 2 * identity(size, a)
    b = matrices(batch[less:], *((size, sides) if left else (sides, size)), dtype, layout, seed=1)
    expected = aten.linalg_solve_triangular.default(
        a, b, upper=upper, left=left, unitriangular=ones
    )
    (got,) = call("linalg_solve_triangular", a, b, upper, left, ones)
    close(got, expected)
    if not left:
        return
    for transpose in (False, True):
        options = (upper, transpose, ones)
        all_close(
            slim.call("aoti_torch_cpu_triangular_solve", b, a, *map(int, options)),
            aten.triangular_solve.default(b, a, *options),
        )


@pytest.mark.parametrize(
    "name", ["cholesky", "inv_ex", "solve", "lu_factor", "eigh", "svd", "what"]
)
def test_check_errors(name: str) -> None:
    def check(info: Tensor) -> None:
        call("_linalg_check_errors", info, f"linalg.{name}", info.dim() == 0, results=0)

    check(torch.tensor(0, dtype=torch.int32))
    check(torch.zeros(0, dtype=torch.int32))
    check(torch.zeros(2, 3, dtype=torch.int32))
    meaning = {
        "cholesky": "the matrix is not positive-definite: its leading minor of order 2 is not",
        "inv_ex": "the diagonal element 2 is zero, the matrix is singular",
        "solve": "the matrix is singular",
        "lu_factor": r"U\[2,2\] is zero",
        "eigh": "it did not converge",
        "svd": "it did not converge",
        "what": "unknown error code 2",
    }[name]
    with pytest.raises(harness.OpError, match=rf"^linalg\.{name}: {meaning}"):
        check(torch.tensor(2, dtype=torch.int32))
    info = torch.tensor([[0, 0], [0, 2], [3, 0]], dtype=torch.int32)
    with pytest.raises(harness.OpError, match=rf"^linalg\.{name}: \(batch element 3\): {meaning}"):
        check(info)
    with pytest.raises(harness.OpError, match=rf"^linalg\.{name}: \(batch element 2\): "):
        check(info.mT)
    with pytest.raises(harness.OpError, match="info is float32, must be int32"):
        check(torch.zeros(2))


@settings(max_examples=40)
@given(rows=sizes, inner=sizes, columns=sizes, dtype=dtypes, layout=layouts, batch=st.booleans())
def test_products_by_name(
    rows: int, inner: int, columns: int, dtype: torch.dtype, layout: str, batch: bool
) -> None:
    a = matrices((3,) if batch else (), rows, inner, dtype, layout)
    b = matrices((3,) if batch else (), inner, columns, dtype, layout, seed=1)
    (got,) = call("bmm" if batch else "mm", a, b)
    close(got, torch.matmul(a, b))


def wrong() -> list[tuple[str, tuple[Any, ...], str]]:
    x, half = torch.zeros(3, 3), torch.zeros(3, 3, dtype=torch.float16)
    pivots = torch.ones(3, dtype=torch.int32)
    float_or_complex = "must be float32, float64, complex64 or complex128"
    return [
        ("linalg_cholesky_ex", (torch.zeros(2, 3), False, False), "2 by 3, must be square"),
        ("linalg_cholesky_ex", (half, False, False), f"float16, {float_or_complex}"),
        ("linalg_inv_ex", (torch.zeros(3), False), "rank 1 was given"),
        ("linalg_inv_ex", (x.int(), False), f"int32, {float_or_complex}"),
        ("_linalg_det", (torch.zeros(2, 3),), "2 by 3, must be square"),
        ("_linalg_slogdet", (half,), float_or_complex),
        ("linalg_lu_factor_ex", (x, False, False), "pivot is false, must be true"),
        ("linalg_lu", (torch.zeros(3), True), "rank 1 was given"),
        ("_linalg_solve_ex", (x, torch.zeros(2, 3), True, False), "do not match"),
        ("_linalg_solve_ex", (x, torch.zeros(3), False, False), "B is a vector"),
        ("_linalg_solve_ex", (x, x.double(), True, False), "dtypes differ: float32 and float64"),
        ("linalg_lu_solve", (x, pivots * 4, x, True, False), "a pivot is 4, must be in 1..3"),
        ("linalg_lu_solve", (x, pivots[1:], x, True, False), "sizes of the pivots do not match"),
        ("linalg_lu_solve", (x, pivots.long(), x, True, False), "int64, must be int32"),
        ("linalg_solve_triangular", (x, torch.zeros(2, 3), True, True, False), "do not match"),
        ("linalg_qr", (x, "full"), 'mode is "full", must be "reduced", "complete" or "r"'),
        ("linalg_qr", (torch.zeros(3), "r"), "rank 1 was given"),
        ("_linalg_eigh", (x, "X", True), 'UPLO is "X", must be "L" or "U"'),
        ("_linalg_eigh", (torch.zeros(2, 3), "L", True), "2 by 3, must be square"),
        ("_linalg_svd", (half, False, True, None), float_or_complex),
        ("linalg_matrix_exp", (torch.zeros(2, 3),), "2 by 3, must be square"),
        ("mm", (x, torch.zeros(2, 3)), r"\[3, 3\] and \[2, 3\] cannot be multiplied"),
        ("bmm", (x, x), "rank 2 was given, 3 is needed"),
    ]


@pytest.mark.parametrize(("name", "arguments", "message"), wrong())
def test_errors(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(harness.OpError, match=message):
        call(name, *arguments, results=4)


def test_errors_of_functions() -> None:
    x = torch.zeros(3, 3)
    for name, arguments in (
        ("cholesky_solve", (torch.zeros(2, 3), x, 0)),
        ("cholesky_inverse", (torch.zeros(2, 3), 0)),
        ("triangular_solve", (torch.zeros(2, 3), x, 1, 0, 0)),
        ("lu_unpack", (x, torch.full((3,), 9, dtype=torch.int32), 1, 1)),
    ):
        with pytest.raises(harness.OpError, match=r"must be|do not match"):
            slim.call(f"aoti_torch_cpu_{name}", *arguments)
