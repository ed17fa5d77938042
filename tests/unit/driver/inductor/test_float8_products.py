"""Products of float8 matrices: computed in float32, with the results of PyTorch's operator."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from aoti_driver.inductor import float8_products
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


class Product(nn.Module):
    weight: Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        # Programs store float8 as uint8.
        self.register_buffer("weight", torch.randn(16, 32).to(dtype).view(torch.uint8))

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        weight = self.weight.view(self.dtype).t()
        return torch._scaled_mm(x.to(self.dtype), weight, scale, scale, out_dtype=torch.float32)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_no_operator_gets_float8(tmp_path: Path, dtype: torch.dtype) -> None:
    harness.freeze(tmp_path, Product(dtype), (torch.randn(4, 32), torch.ones(())))
    harness.generate(tmp_path, "product")
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert "aoti_torch_cpu__scaled_mm" not in wrapper
    assert "aoti_torch_cpu_mm_out" in wrapper


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("out_dtype", [torch.bfloat16, torch.float16, torch.float32, None])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_the_results_are_pytorchs(
    dtype: torch.dtype, out_dtype: torch.dtype | None, biased: bool, rows: bool
) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(3, 16).to(dtype), torch.randn(16, 16).to(dtype).t()
    scales = (torch.rand(3, 1), torch.rand(1, 16)) if rows else (torch.rand(()), torch.rand(()))
    bias = torch.randn(16) if biased else None
    got = float8_products.product(a, b, *scales, bias, out_dtype=out_dtype)
    expected = torch._scaled_mm(a, b, *scales, bias, out_dtype=out_dtype)
    assert got.dtype == expected.dtype
    # One step of the result's dtype.
    step = 0.3 if out_dtype is None else 0.01
    torch.testing.assert_close(got.float(), expected.float(), atol=step, rtol=step)
