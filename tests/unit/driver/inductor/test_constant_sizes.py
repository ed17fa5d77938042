"""Operators for which Inductor makes a constant of a size: here they are right for all sizes, and
any other is refused.
"""

from __future__ import annotations

import contextlib
import re

import pytest
import torch
from aoti_driver.inductor import constant_sizes

from tests.unit.driver.harness import Export, codegen, module

OPERATORS = {
    "aten.glu": "torch.nn.functional.glu(x, 2)",
    "aten._adaptive_avg_pool2d": "torch.nn.functional.adaptive_avg_pool2d(x, (3, 4))",
    "the same": "torch.nn.functional.interpolate(x, size=(5, 4), mode='area')",
    "aten.adaptive_max_pool2d": "torch.nn.functional.adaptive_max_pool2d(x, (4, 4))",
    "aten.convolution": "torch.conv1d(x.transpose(1, 2).reshape(1, -1, 6), x[0].transpose(0, 1), "
    "groups=x.shape[2])",
    "aten.convolution, transposed": "torch.conv_transpose1d(x.transpose(1, 2).reshape(1, -1, 6), "
    "x.transpose(1, 2).reshape(-1, 2, 3), groups=x.shape[2])",
}
INPUTS = {"x": "float32[1, 3, 2*h, 6]"}
DIMS = {"h": "1..20"}


@pytest.mark.parametrize("operator", OPERATORS)
def test_sizes_stay_sizes(export: Export, operator: str) -> None:
    code = codegen(export(module(f"return {OPERATORS[operator]}"), INPUTS, DIMS))
    if operator != "aten.glu":
        called = "convolution" if "convolution" in operator else "_?adaptive_"
        assert re.search(rf"\(aoti_torch_cpu_{called}", code)


def test_a_static_size_is_written_out(export: Export) -> None:
    source = module(f"return {OPERATORS['aten._adaptive_avg_pool2d']}")
    code = codegen(export(source, {"x": "float32[n, 3, 8, 6]"}, {"n": "1..4"}))
    assert "aoti_torch_cpu__adaptive" not in code


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_size_that_becomes_a_constant_is_refused(
    export: Export,
    operator: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(constant_sizes, "avoided", contextlib.nullcontext)
    result = export(module(f"return {OPERATORS[operator]}"), INPUTS, DIMS)
    with pytest.raises(AssertionError):
        codegen(result)
    assert re.fullmatch(
        rf"//pkg:m: Inductor \(torch {re.escape(torch.__version__)}\) makes a constant of dim 2 "
        r'\(2\*h\) of input "x": its code would be right for the size (\d+) alone. Replace the '
        r"operator that needs this size in forward\(\), or write \1 for it in `inputs`\n",
        capsys.readouterr().err,
    )
