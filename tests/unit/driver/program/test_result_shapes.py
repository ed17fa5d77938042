"""Shapes that the driver tells torch, compared with those of PyTorch's results."""

from __future__ import annotations

import pytest
import torch
from aoti_driver.program import result_shapes
from torch import Tensor, nn
from torch.export import Dim, export

result_shapes.declare()


class Geqrf(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.geqrf(x)


@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (0, 4), (4, 0), (2, 0, 3), (2, 3, 5, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_geqrf(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype)
    for own, expected in zip(torch.geqrf(x.to("meta")), torch.geqrf(x), strict=True):
        assert (own.shape, own.stride(), own.dtype) == (
            expected.shape,
            expected.stride(),
            expected.dtype,
        )


def test_geqrf_of_a_vector() -> None:
    with pytest.raises(RuntimeError, match="input must have at least 2 dimensions"):
        torch.geqrf(torch.zeros(3, device="meta"))


def test_geqrf_of_any_number_of_rows() -> None:
    """Which torch alone refuses: it would have to run the operator to find the shapes."""
    rows = {0: Dim("batch", min=1, max=8), 1: Dim("rows", min=2, max=8)}
    program = export(Geqrf(), (torch.randn(3, 5, 4),), dynamic_shapes=(rows,))
    x = torch.randn(2, 3, 4)
    for own, expected in zip(program.module()(x), torch.geqrf(x), strict=True):
        torch.testing.assert_close(own, expected)


class Deviation(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.std_mean(x, dim=-1, unbiased=False, keepdim=True)


def test_deviation_and_mean_of_any_number_of_rows() -> None:
    rows = {0: Dim("rows", min=1, max=8)}
    program = export(Deviation(), (torch.randn(3, 5),), dynamic_shapes=(rows,))
    x = torch.randn(2, 5)
    results = program.run_decompositions({}).module()(x)
    for own, expected in zip(results, Deviation()(x), strict=True):
        torch.testing.assert_close(own, expected)
