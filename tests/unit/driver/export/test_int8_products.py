"""precision = "int8": which weights become int8, and what products with them compute."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from aoti_driver.export import precision
from aoti_driver.process import cli
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from tests.unit.driver import harness

aten = torch.ops.aten


def lowered(module: nn.Module, args: tuple[Any, ...], shapes: Any = None) -> ExportedProgram:
    with torch.no_grad():
        program = torch.export.export(module.eval(), args, dynamic_shapes=shapes)
    precision.lower(program, "int8")
    return program


def rounded(matrix: Tensor) -> tuple[Any, Any]:
    """int8 numbers and the scale of each row, in NumPy and float64."""
    numbers = matrix.detach().numpy().astype(np.float64)
    scales = np.abs(numbers).max(1, keepdims=True) / 127
    scales[scales == 0] = 1
    return np.rint(numbers / scales), scales


class Layers(nn.Module):
    """A table, and two linear layers after it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 64)
        self.first = nn.Linear(64, 96)
        self.last = nn.Linear(96, 16, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        result: Tensor = self.last(self.first(self.table(ids)).relu())
        return result


@pytest.fixture
def layers() -> Layers:
    torch.manual_seed(0)
    return Layers()


def test_weights_and_tables_are_int8_with_scales(layers: Layers) -> None:
    program = lowered(layers, (torch.zeros(3, 7, dtype=torch.int64),))
    stored = program.state_dict
    for name in ("table.weight", "first.weight", "last.weight"):
        numbers, scales = rounded(layers.get_parameter(name))
        assert stored[name].dtype == torch.int8
        np.testing.assert_array_equal(stored[name].detach().numpy(), numbers)
        np.testing.assert_allclose(stored[name + "_scales"].detach().numpy(), scales[:, 0], 1e-6)
    assert stored["first.bias"].dtype == torch.float32
    assert len(stored) == 7
    products = program.graph.find_nodes(op="call_function", target=aten._int_mm.default)
    assert len(products) == 2
    assert not program.graph.find_nodes(op="call_function", target=aten.linear.default)


@pytest.mark.parametrize("shape", [(5, 64), (2, 3, 64), (64,), (0, 64)])
def test_a_product_is_that_of_rounded_rows(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    module = nn.Linear(64, 17)
    with torch.no_grad():
        module.weight[3] = 0
    x = torch.randn(shape)
    if len(shape) == 2 and shape[0]:
        x[1] = 0
    got = lowered(module, (x,)).module()(x).detach().numpy()
    weight, scales = rounded(module.weight)
    if x.numel():
        rows, steps = rounded(x.reshape(-1, 64))
        expected = (rows @ weight.T) * steps * scales.T + module.bias.detach().numpy()
        np.testing.assert_allclose(got.reshape(-1, 17), expected, 1e-5, 1e-5)
    assert got.shape == (*shape[:-1], 17)
    assert got.dtype == np.float32


def test_sizes_that_vary(layers: Layers) -> None:
    shapes = ({0: Dim("batch", min=1, max=8), 1: Dim("seq", min=2, max=9)},)
    program = lowered(layers, (torch.zeros(3, 7, dtype=torch.int64),), shapes)
    for size in [(1, 9), (5, 2)]:
        ids = torch.randint(0, 50, size)
        got, expected = program.module()(ids), layers(ids)
        assert got.shape == expected.shape
        error = (got - expected).abs().max() / expected.abs().max()
        assert 1e-4 < error < 3e-2  # it is rounded, and no more than that


def test_what_is_saved_can_be_exported_again(layers: Layers) -> None:
    program = lowered(layers, (torch.zeros(3, 7, dtype=torch.int64),))
    program.validate()  # type: ignore[no-untyped-call]
    again = program.run_decompositions()
    ids = torch.randint(0, 50, (3, 7))
    torch.testing.assert_close(again.module()(ids), program.module()(ids))


class Others(nn.Module):
    """What stays float32: few columns or rows, a matrix that is not transposed, one that is added
    or read in two ways, one that is written, a tied one, and one that is not finite.
    """

    def __init__(self) -> None:
        super().__init__()
        self.short = nn.Linear(63, 64)
        self.few = nn.Linear(64, 15)
        self.matrix = nn.Parameter(torch.randn(64, 64))
        self.added = nn.Parameter(torch.randn(64, 64))
        self.both = nn.Linear(64, 64)
        self.infinite = nn.Linear(64, 64)
        self.table = nn.Embedding(64, 64)
        self.tied = nn.Linear(64, 64)
        self.tied.weight = self.table.weight
        self.vector = nn.Linear(64, 64)
        with torch.no_grad():
            self.infinite.weight[0, 0] = torch.inf

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        y = self.short(x[:, :63]) @ self.matrix + self.added
        y = y + self.both(y) * self.both.weight + self.infinite(y).clamp(-1, 1)
        y = self.tied(y + self.table(ids)) + self.vector(y)
        result: Tensor = self.few(y)
        return result


def test_what_stays_float32() -> None:
    torch.manual_seed(0)
    module = Others()
    program = lowered(module, (torch.randn(64, 64), torch.zeros(64, dtype=torch.int64)))
    narrow = {name for name, t in program.state_dict.items() if t.dtype == torch.int8}
    assert narrow == {"vector.weight"}
    assert {n for n in program.state_dict if n.endswith("_scales")} == {"vector.weight_scales"}


def test_a_row_that_is_not_finite_is_nan() -> None:
    module = nn.Linear(64, 16)
    x = torch.randn(3, 64)
    program = lowered(module, (x,))
    x[0, 5], x[1, 7] = torch.nan, torch.inf
    got = program.module()(x)
    assert got[:2].isnan().all() and got[2].isfinite().all()


def test_a_program_says_it_and_is_for_cpus(
    export: harness.Export, capsys: pytest.CaptureFixture[str]
) -> None:
    source = harness.module("return self.layer(x)", "self.layer = nn.Linear(64, 16)")
    result = export(source, {"x": "float32[batch, 64]"}, harness.BATCH, precision="int8")
    assert result.manifest.precision == "int8"
    dtypes = {constant.name: constant.dtype for constant in result.manifest.constants}
    assert dtypes == {
        "layer.bias": "float32",
        "layer.weight": "int8",
        "layer.weight_scales": "float32",
    }
    spec = {"program_id": "m", "isa": "x86-64-v3", "options": {}}
    cuda = {"device": "cuda", "cuda_archs": ["sm_80"]}
    outs = [f"--out_{n}={result.graph.parent / n}" for n in ("wrapper", "kernels", "manifest")]
    files = [f"--graph={result.graph}", f"--manifest={result.manifest_path}", *outs]
    assert cli.main(["codegen", f"--spec={json.dumps(spec | cuda)}", *files]) == 1
    assert 'precision = "int8" is for CPUs' in capsys.readouterr().err
