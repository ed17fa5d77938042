"""Sizes for which the code that Inductor writes would be wrong are found and refused."""

from __future__ import annotations

import types
from typing import Any

import pytest
import sympy
import torch
from aoti_driver.contract.size_expr import Name, Number, Operation
from aoti_driver.inductor.assumed_sizes import (
    counterexample,
    independent,
    says_more_than_one,
)
from aoti_driver.torch_internals import decomposition_table
from torch.utils._sympy.functions import Mod
from torch.utils._sympy.value_ranges import ValueRanges

from tests.unit.driver.harness import Export, codegen, module

INPUTS = {"x": "float32[2*h, 6]"}
DIAGONAL = module("return torch.diagonal(x)")


def test_a_diagonal_of_one_length_is_refused(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    result = export(DIAGONAL, INPUTS, {"h": "1..20"})
    with pytest.raises(AssertionError):
        codegen(result)
    error = capsys.readouterr().err
    assert error.startswith("//pkg:m: the code that is generated for aten.diagonal.default (torch ")
    assert error.endswith(
        ') is wrong where dim 0 (2*h) of input "x" is 4: it is '
        "for some of the declared sizes alone. Replace the operator in forward(), or declare "
        "another range in dynamic_dims\n"
    )


def test_a_range_for_which_the_code_is_right_is_not(export: Export) -> None:
    codegen(export(DIAGONAL, INPUTS, {"h": "4..20"}))


def _branching(x: Any) -> Any:
    return x * 2 if x.shape[0] > 6 else x * 3


def test_a_decomposition_of_this_project_that_branches_is_refused(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    result = export(module("return torch.special.entr(x)"), INPUTS, {"h": "1..20"})
    entr = torch.ops.aten.special_entr.default
    with decomposition_table.added({entr: _branching}):
        codegen(result)  # this is another module, as PyTorch's are
    ours = types.FunctionType(_branching.__code__, {"__name__": "aoti_driver.cuda.layers"})
    with decomposition_table.added({entr: ours}), pytest.raises(AssertionError):
        codegen(result)
    error = capsys.readouterr().err
    assert error.startswith("//pkg:m: the code that is generated for aten.special_entr.default")
    assert 'is wrong where dim 0 (2*h) of input "x" is 4: ' in error


def test_counterexamples() -> None:
    h, w = sympy.symbols("h w", integer=True, positive=True)
    ranges = {h: ValueRanges(1, 1000), w: ValueRanges(4, 8)}
    assert counterexample(sympy.Eq(Mod(h, 3), 0), ranges) == {h: 2}
    assert counterexample(h < 1000, ranges) == {h: 1000}
    assert counterexample(sympy.Le(w, h), ranges) == {h: 2, w: 4}
    # Those hold for all sizes, or leave out 1 alone.
    for guard in (h < 2 * h, w > 3, h > 1, sympy.Ne(h, 1)):
        assert counterexample(sympy.sympify(guard), ranges) is None


def test_sizes_of_results_that_are_more_than_one() -> None:
    h, w = sympy.symbols("h w", integer=True, positive=True)
    pooled = (h - 1) // 2 + 1
    assert says_more_than_one(4 * pooled > 4)
    assert says_more_than_one(sympy.Lt(w, h * w))
    for guard in (2 * h > 6, h < 6, h > w, sympy.Ge(4 * h, 4)):
        assert not says_more_than_one(guard)


def test_sizes_that_belong_together_are_no_example() -> None:
    h, w = Name("h"), Name("w")
    half = Operation("//", (h, Number(2)))
    assert independent([h, w]) and independent([h])
    assert not independent([h, half])
    assert not independent([h, Operation("+", (h, w))])
    assert not independent([Operation("+", (h, w))])
