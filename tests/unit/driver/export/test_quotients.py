"""Sizes of inputs that are quotients of dims, rounded down."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch
from aoti_driver.contract.dims import parse_dims
from aoti_driver.contract.specs import parse_specs
from aoti_driver.export.checks import small_ends

from tests.unit.driver.harness import Export

HALVES = """
    import torch
    import torch.nn.functional as F

    class Pool(torch.nn.Module):
        def forward(self, x, y):
            return F.max_pool2d(x[None], (1, 2), ceil_mode=True)[0] + y

    class Half(torch.nn.Module):
        def forward(self, x, y):
            return x[:, :, : x.shape[2] // 2] * y

    class Apart(torch.nn.Module):
        def forward(self, x, y):
            return x.sum() + 2 * y

    class Skips(torch.nn.Module):
        def forward(self, x, y):
            return y if y.shape[2] == 1 else x[:, :, ::3]
"""


@pytest.mark.parametrize(
    ("entry_point", "size", "low"),
    [("Pool", "(n + 1) // 2", 1), ("Half", "n // 2", 0), ("Apart", "(n + 2) // 3", 1)],
)
def test_a_size_is_a_quotient(export: Export, entry_point: str, size: str, low: int) -> None:
    inputs = {"y": f"float32[1, 4, {size}]", "x": "float32[1, 4, n]"}
    result = export(HALVES, inputs, {"n": f"{low}..64"}, entry_point=f"pkg.m:{entry_point}")
    manifest = result.manifest
    (shape,) = [i.shape for i in manifest.inputs if i.name == "y"]
    assert str(shape[2]) == size.replace(" // ", "//")
    assert not manifest.guards
    names: dict[str, Any] = {}
    exec(textwrap.dedent(HALVES), names)
    program = result.program().module(check_guards=False)
    for n in (*range(low, 9), 63, 64):
        x, y = torch.randn(1, 4, n), torch.randn(1, 4, shape[2].evaluate({"n": n}))
        actual = program(*({"x": x, "y": y}[i.name] for i in manifest.inputs))
        torch.testing.assert_close(actual, names[entry_point]()(x, y))


def test_a_quotient_of_1_is_refused_where_forward_does_something_else(export: Export) -> None:
    inputs = {"x": "float32[1, 4, n]", "y": "float32[1, 4, n // 3]"}
    result = export(HALVES, inputs, {"n": "4..64"}, entry_point="pkg.m:Skips")
    assert [str(guard) for guard in result.manifest.guards] == ["n // 3 != 1"]


def test_small_quotients_are_tried() -> None:
    dims = parse_dims({"n": "2..64", "m": "0..9"}, "//m:e")
    inputs = {"x": "float32[n, m]", "y": "float32[n // 3, (n + 2*m) // 4]"}
    sizes = parse_specs(inputs, dims, "//m:e")["y"].shape
    assert small_ends(dims.ranges, sizes)[2:] == [
        # n // 3 is 0 and 1
        {"n": 2},
        {"n": 3},
        {"n": 5},
        # (n + 2*m) // 4 is 0 and 1
        {"n": 2, "m": 0},
        {"n": 3, "m": 0},
        {"n": 4, "m": 0},
        {"n": 7, "m": 0},
        {"n": 2, "m": 1},
        {"n": 2, "m": 2},
    ]
