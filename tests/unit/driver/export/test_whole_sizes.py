"""Whole numbers that a model makes of quotients of sizes, as in ``int(h / 2)``."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import pytest
import torch

from tests.unit.driver.harness import Export, fails

MODEL = """
    import math
    import torch
    from torch.nn import functional as F

    class M(torch.nn.Module):
        def forward(self, x):
            n = x.shape[1]
            {body}

    def is_int(value):
        return isinstance(value, int) and not isinstance("", int)
"""
X = {"x": "float32[1, h]"}
H = {"h": "6..100"}


@pytest.mark.parametrize(
    "body",
    [
        "return x[:, : int(n / 2)]",
        "return x[:, : int(n * 0.5)]",
        "return x[:, : int(n / 2.0) + int(3.7)]",
        "return x[:, : int(n / 3)]",
        "return x[:, : math.ceil(n / 2)]",
        "return x[:, : math.floor(n / 2)]",
        "return x[:, : math.trunc(n / 3)]",
        "return x.narrow(1, int(n / 2), n - int(n / 2))",
        "return x[:, : int(n / 2) * 2].reshape(int(n / 2), 2)",
        "return F.interpolate(x[None], size=int(n * 1.5))",
        "return x[:, : int(n / 2)] * is_int(3) * int('2', base=10)",
        "a, b = map(int, (n / 2, n)); return x[:, a:b]",
    ],
)
def test_whole_numbers_of_quotients(export: Export, body: str) -> None:
    source = MODEL.format(body=body)
    result = export(source, X, H, entry_point="pkg.m:M")
    assert not result.manifest.guards
    program = result.program().module(check_guards=False)
    names: dict[str, Any] = {}
    exec(textwrap.dedent(source), names)
    for n in (*range(6, 15), 99, 100):
        x = torch.randn(1, n)
        torch.testing.assert_close(program(x), names["M"]()(x))


def test_an_output_has_the_quotient(export: Export) -> None:
    sizes = {
        "int(n / 2)": "h//2",
        "int(n * 0.75)": "(3*h)//4",
        "math.ceil(n / 2)": "(h + 1)//2",
    }
    for number, size in sizes.items():
        body = f"return torch.zeros({number}) + x.sum()"
        result = export(MODEL.format(body=body), X, H, entry_point="pkg.m:M")
        assert str(result.manifest.outputs[0].shape[0]) == size


@pytest.mark.parametrize("number", ["int(n * 0.1)", "int(-n / 2) + n", "math.floor(n * 0.7)"])
def test_other_numbers_are_computed_in_float64_as_in_python(export: Export, number: str) -> None:
    source = MODEL.format(body=f"return torch.zeros({number}) + x.sum()")
    program = export(source, X, H, entry_point="pkg.m:M").program().module(check_guards=False)
    for n in range(6, 101):
        assert len(program(torch.randn(1, n))) == eval(number, {"n": n, "math": math})


def test_a_strict_export_keeps_sizes_too(export: Export) -> None:
    source = MODEL.format(body="return torch.zeros(int(n / 2)) + x.sum()")
    result = export(source, X, H, entry_point="pkg.m:M", strict=True)
    assert str(result.manifest.outputs[0].shape[0]) == "h//2"


def test_a_size_rounded_up_that_is_no_quotient_is_refused(export: Export) -> None:
    source = MODEL.format(body="return torch.zeros(math.ceil(n * 0.7)) + x.sum()")
    error = fails(export, source, X, H, entry_point="pkg.m:M")
    assert 'can\'t write the operator "ceil" to a file' in error


def test_halves_that_are_rounded_to_even_are_refused(export: Export) -> None:
    source = MODEL.format(body="return x[:, : round(n / 2)]")
    error = fails(export, source, X, H, entry_point="pkg.m:M")
    assert "satisfy the generated guard round(" in error
