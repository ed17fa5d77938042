"""Matrices for tests of linear algebra, and comparisons up to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dispatcher
import harness
import torch
from hypothesis import strategies as st
from torch import Tensor

slim = harness.load()

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SIZES = [0, 1, 2, 3, 7, 17, 33, 64, 130]
BATCHES: list[tuple[int, ...]] = [(), (2,), (0,), (2, 1, 2)]
LAYOUTS = ["plain", "transposed", "sliced", "expanded"]

dtypes = st.sampled_from(DTYPES)
sizes = st.sampled_from(SIZES)
batches = st.sampled_from(BATCHES)
layouts = st.sampled_from(LAYOUTS)


def matrices(
    batch: Sequence[int],
    rows: int,
    columns: int,
    dtype: torch.dtype,
    layout: str = "plain",
    seed: int = 0,
) -> Tensor:
    """Random numbers; an expanded batch repeats its first matrix."""
    generator = torch.Generator().manual_seed(seed)
    shape = (*batch, rows, columns)
    if layout == "transposed":
        return torch.randn((*batch, columns, rows), dtype=dtype, generator=generator).mT
    if layout == "sliced":
        double = tuple(2 * n for n in shape)
        x = torch.randn(double, dtype=dtype, generator=generator)
        return x[tuple(slice(None, None, 2) for _ in shape)]
    if layout == "expanded":
        return torch.randn(shape[-2:], dtype=dtype, generator=generator).expand(shape)
    return torch.randn(shape, dtype=dtype, generator=generator)


def identity(size: int, like: Tensor) -> Tensor:
    return torch.eye(size, dtype=like.dtype).expand(*like.shape[:-2], size, size)


def call(name: str, *args: Any, results: int = 1) -> tuple[Tensor, ...]:
    return dispatcher.call(slim, f"aten::{name}", *args, results=results)


def close(actual: Tensor, expected: Tensor, *, strides: bool = True) -> None:
    """Compares up to rounding, relative to the largest number."""
    expected = expected.resolve_conj()
    if not (expected.is_floating_point() or expected.is_complex()):
        harness.assert_equal(actual, expected, strides=strides)
        return
    tolerance = 3e-4 if expected.dtype in (torch.float32, torch.complex64) else 1e-10
    largest = expected.abs().nan_to_num(0, 0, 0).max().item() if expected.numel() else 0.0
    harness.assert_equal(
        actual, expected, rtol=tolerance, atol=tolerance * max(largest, 1.0), strides=strides
    )


def all_close(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        close(ours, theirs)


def unitary(q: Tensor) -> None:
    close(q.mH @ q, identity(q.shape[-1], q), strides=False)
