"""Functions such as log1p are computed for vectors also at the end of a loop."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from tests.unit.driver.inductor import harness
from tests.unit.driver.inductor.harness import Compiled


class Functions(nn.Module):
    """Loops that Inductor would rather end with one element at a time."""

    def forward(self, x: Tensor, places: Tensor, wide: Tensor) -> tuple[Tensor, ...]:
        turned = x.transpose(1, 2)
        return (
            functional.softplus(turned[..., :4]),
            functional.softplus(turned[..., 4:]) + 1,
            torch.where(x > 0, x.tanh(), x.expm1()),
            torch.where(x[:, ::3] > 0, x[:, ::3].sin(), x[:, 1:2].exp()),
            x[:, :3, 0].exp(),
            x[0][places].sigmoid(),
            functional.pad(x.exp(), (1, 2, 1, 0)),
            functional.softplus(x).amax(1),
            functional.softplus(wide),
            functional.mish(x.transpose(0, 1)),
            functional.mish(x.bfloat16().transpose(0, 1)),
        )


# rows, channels, columns
_SIZES = [(1, 11, 1), (2, 11, 3), (3, 11, 8), (1, 11, 17), (2, 11, 40)]


def _inputs(rows: int, channels: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(rows, channels, columns) * 10
    return x, torch.randint(0, channels, (5,)), x[..., 0].double()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("functions")
    varies = {0: Dim("rows", min=1, max=50), 2: Dim("columns", min=1, max=5000)}
    shapes = {"x": varies, "places": None, "wide": {0: varies[0]}}
    harness.freeze(folder, Functions(), _inputs(2, 11, 9), {}, shapes)
    return folder


def test_results(built: Path) -> None:
    harness.generate(built, "functions", harness.ISA)
    tables = built / "tables.cpp"
    tables.write_text(harness.tables_source(["functions"]), encoding="utf-8")
    objects = harness.compile_sources([*harness.sources(built), tables], harness.ISA)
    harness.link([*objects, harness.compile_threads(built)[0]], built / "programs.so")
    run = Compiled(ctypes.CDLL(str(built / "programs.so")), "functions", built)
    for sizes in _SIZES:
        inputs = _inputs(*sizes)
        *expected, rounded = Functions()(*inputs)
        *results, last = run(*inputs)
        torch.testing.assert_close(results, expected, rtol=1e-5, atol=1e-6)
        # PyTorch rounds to bfloat16 between the functions, too.
        torch.testing.assert_close(last, rounded, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("isa", ["x86-64-v3", "x86-64-v4"])
def test_no_function_of_one_element(built: Path, isa: str) -> None:
    harness.generate(built, "functions", isa)
    text = harness.kernels(built)
    assert ".log1p()" in text and ".exp()" in text
    assert re.findall(r"std::(?:log1p|tanh|expm1)\(", text) == []
