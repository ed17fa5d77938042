"""Ints that may be negative, and ints in narrow ranges, which torch.export takes for sizes."""

from __future__ import annotations

import pytest
import torch

from tests.unit.driver.harness import Export, codegen, fails

LINES = {
    "roll": "torch.roll(x, k, 1)",
    "operand": "x + 2 * k",
    "division": "torch.full((3,), k // 2), torch.full((3,), k % 3)",
    "triangle": "torch.tril(x, k)",
    "size": "torch.zeros(k + 4, 2), x[:, :k + 5]",
    "padding": "torch.nn.functional.pad(x, (k, 0))",
    "index": "x[k]",
    "slice": "x[:, k:]",
    "result": "x, k",
}


def model(line: str) -> str:
    return f"""
    import torch

    class M(torch.nn.Module):
        def forward(self, x, k: int = -1):
            return {line}
    """


def arguments(values: str) -> tuple[dict[str, str], dict[str, str]]:
    return {"x": "float32[n, 13]", "k": f"int in {values}"}, {"n": "8..30"}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("low", "high"), [(-3, 3), (-4, -1)])
def test_an_int_may_be_negative(export: Export, name: str, low: int, high: int) -> None:
    result = export(model(LINES[name]), *arguments(f"{low}..{high}"), entry_point="pkg.m:M")
    manifest = result.manifest
    assert [(d.name, d.min, d.max) for d in manifest.dims] == [("n", 8, 30), ("k", low, high)]
    assert manifest.inputs[1].default == -1
    assert not manifest.guards
    program = result.program().module(check_guards=False)
    x = torch.randn(9, 13)
    for k in range(low, high + 1):
        expected = eval(LINES[name], {"torch": torch, "x": x, "k": k})
        leaves = torch.utils._pytree.tree_leaves
        for one, other in zip(leaves(program(x, k)), leaves(expected), strict=True):
            torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other))
    assert codegen(result)


@pytest.mark.parametrize("values", ["-3..3", "-4..-1", "-2..0"])
def test_a_negative_int_chooses_no_code(export: Export, values: str) -> None:
    error = fails(export, model("x if k > 0 else -x"), *arguments(values), entry_point="pkg.m:M")
    wanted = (
        'inputs["k"]: the model works only for 1..3, but -3..3 is declared.'
        if values == "-3..3"
        else 'forward() does something else for some values of the input "k"\n'
        "  pkg/m.py:6 in forward\n"
    )
    assert f"//pkg:m: {wanted}" in error


@pytest.mark.parametrize("values", ["0..1", "1..2", "0..2", "2..3"])
@pytest.mark.parametrize("strict", [False, True])
def test_narrow_ranges(export: Export, values: str, strict: bool) -> None:
    result = export(model("x.topk(k)[0]"), *arguments(values), entry_point="pkg.m:M", strict=strict)
    assert not result.manifest.guards
    assert [str(size) for size in result.manifest.outputs[0].shape] == ["n", "k"]
    program = result.program().module(check_guards=False)
    x = torch.randn(9, 13)
    low, _, high = values.partition("..")
    for k in range(int(low), int(high) + 1):
        torch.testing.assert_close(program(x, k), x.topk(k)[0])
