"""Python numbers among the arguments, which vary from call to call, and values that do not."""

from __future__ import annotations

import pytest
import torch
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import read_weights
from aoti_driver.verify.reference import ProgramReference

from tests.unit.driver.harness import Export, codegen, fails, module

SAMPLER = """
    import torch

    class Sampler(torch.nn.Module):
        def forward(self, x, temperature: float = 1.0, k: int = 5):
            values, indices = (x / temperature).softmax(-1).topk(k, -1)
            filled = torch.full((2,), temperature)
            return values, indices * temperature, x.half() * temperature, filled

    build = Sampler
"""
SAMPLER_INPUTS = {
    "x": "float32[n, 60]",
    "temperature": "float in 0.1..2",
    "k": "int in 1..50",
}
SAMPLER_DIMS = {"n": "1..64"}


def eager_sampler(x: torch.Tensor, temperature: float, k: int) -> tuple[torch.Tensor, ...]:
    values, indices = (x / temperature).softmax(-1).topk(k, -1)
    return values, indices * temperature, x.half() * temperature, torch.full((2,), temperature)


@pytest.mark.parametrize("strict", [False, True])
def test_numbers_are_inputs(export: Export, strict: bool) -> None:
    result = export(SAMPLER, SAMPLER_INPUTS, SAMPLER_DIMS, strict=strict)
    manifest = result.manifest
    assert [(i.name, i.dtype, i.shape, i.number, i.value, i.default) for i in manifest.inputs][
        1:
    ] == [
        ("temperature", "float64", (), "float", None, 1.0),
        ("k", "int64", (), "int", "k", 5),
    ]
    assert manifest.inputs[1].values == (0.1, 2)
    assert [(d.name, d.min, d.max) for d in manifest.dims] == [("n", 1, 64), ("k", 1, 50)]
    assert [str(s) for s in manifest.outputs[0].shape] == ["n", "k"]
    assert [o.dtype for o in manifest.outputs] == ["float32", "float32", "float16", "float32"]


@pytest.mark.parametrize("k", [1, 7, 50])
def test_numbers_keep_the_types_of_eager(export: Export, k: int) -> None:
    program = export(SAMPLER, SAMPLER_INPUTS, SAMPLER_DIMS).program().module(check_guards=False)
    x = torch.randn(9, 60)
    got = program(x, torch.tensor(0.3, dtype=torch.float64), k)
    for actual, expected in zip(got, eager_sampler(x, 0.3, k), strict=True):
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual, expected)


def test_code_of_numbers(export: Export) -> None:
    code = codegen(export(SAMPLER, SAMPLER_INPUTS, SAMPLER_DIMS))
    assert "item_float64" in code


def number_model(line: str) -> str:
    return f"""
    import math
    import torch

    class M(torch.nn.Module):
        def forward(self, x, t: float = 0.5, k: int = 2, *, mode: str = "sum", mask=None):
            {line}

    build = M
"""


FLOATS = ["x * t", "x / t", "x ** t", "t ** x", "x.half() - t", "x.long() * t", "x.clamp(-t, t)"]
FLOATS += ["torch.full((3,), t)", "x * (1 - t)", "torch.where(x > t, x, t)", "x * t ** 0.5"]
FLOATS += [
    "torch.nn.functional.leaky_relu(x, t)",
    "torch.add(x, x, alpha=t)",
    "x + torch.tensor(t)",
]
INTS = ["x[:k]", "x[k]", "x * k", "x / k", "x ** k", "x.long() + k", "torch.arange(k) * 2"]
INTS += ["x.repeat(k, 1)", "x.roll(k, 0)", "torch.full((2,), k)", "x.topk(k)[0]", "x[: k // 2]"]


@pytest.mark.parametrize("expressions", [FLOATS, INTS], ids=["floats", "ints"])
def test_expressions_of_numbers(export: Export, expressions: list[str]) -> None:
    line = f"return {', '.join(expressions)}"
    inputs = {"x": "float32[9, 60]", "t": "float in 0.1..2", "k": "int in 1..8"}
    module = export(number_model(line), inputs).program().module(check_guards=False)
    x = torch.randn(9, 60)
    for t, k in ((0.1, 1), (1.75, 8)):
        results = module(x, torch.tensor(t, dtype=torch.float64), k)
        for expression, actual in zip(expressions, results, strict=True):
            expected = eval(expression, {"torch": torch, "x": x, "t": t, "k": k})
            assert actual.dtype == expected.dtype, expression
            torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize(
    "line",
    ["return x if t > 0.5 else -x", "return x * math.sqrt(t)", "return x / max(t, 0.1)"],
)
def test_floats_choose_no_code(export: Export, line: str) -> None:
    result = export(number_model(line), {"x": "float32[4]", "t": "float in 0.1..2"})
    assert result.error.strip() == (
        '//pkg:m: forward() needs the value of a float that varies from call to call ("t")\n'
        f"  pkg/m.py:7 in forward\n    {line}\n"
        "  Operators of PyTorch take it, and Python's + - * / **. In place of if and max(), "
        "write torch.where and torch.clamp; in place of math.sqrt(t), t ** 0.5.\n"
        '  To make the program for one value, write the value: inputs = {"t": "0.5"}.'
    )


@pytest.mark.parametrize(
    "line", ["return sum(x * i for i in range(k))", "return x * float(k)", "return [x, -x, x][k]"]
)
def test_ints_that_are_fixed(export: Export, line: str) -> None:
    result = export(number_model(line), {"x": "float32[4]", "k": "int in 0..2"})
    assert result.error.strip() == (
        '//pkg:m: forward() works for one value of the input "k" only\n'
        f"  pkg/m.py:7 in forward\n    {line}\n"
        "  A number that varies may be a size, an index, a bound of a slice or an operand of "
        "arithmetic. range(), float(), the index of a list, or a comparison with == fix it.\n"
        '  To make the program for one value, write the value: inputs = {"k": "2"}.'
    )


def test_ints_in_a_part_of_their_range(export: Export) -> None:
    result = export(
        number_model("return x * 2 if k > 3 else x"), {"x": "float32[4]", "k": "int in 2..9"}
    )
    assert result.error.strip() == (
        '//pkg:m: inputs["k"]: the model works only for 2..3, but 2..9 is declared.\n'
        '  Suggested fix: "k": "int in 2..3"'
    )


def test_small_ints_are_tried(export: Export) -> None:
    result = export(
        number_model("return x * 2 if k == 1 else x"), {"x": "float32[4]", "k": "int in 1..9"}
    )
    assert 'inputs["k"]: the exported program is wrong for k = 1' in result.error
    assert 'Declare "int in 2..9", and a second model for the value 1' in result.error


def test_values_that_do_not_vary(export: Export) -> None:
    line = "return (x.sum() if mode == 'sum' else x.max()) * t + (0 if mask is None else 1) + k"
    inputs = {"x": "float32[4]", "mode": "'max'", "k": "7", "t": "0.25", "mask": "None"}
    result = export(number_model(line), inputs)
    assert [i.name for i in result.manifest.inputs] == ["x"]
    program = result.program()
    x = torch.randn(4)
    leaves = [x, 0.25, 7]
    torch.testing.assert_close(
        program.module(check_guards=False)(*leaves, mode="max", mask=None), x.max() * 0.25 + 7
    )


def test_arguments_that_nobody_lists_have_their_defaults(export: Export) -> None:
    line = "return (x.sum() if mode == 'sum' else x.max()) * t + (0 if mask is None else 1) + k"
    result = export(number_model(line), {"x": "float32[4]"})
    x = torch.randn(4)
    torch.testing.assert_close(result.program().module(check_guards=False)(x), x.sum() * 0.5 + 2)


def test_numbers_of_a_sample(export: Export) -> None:
    source = number_model("return x[:k] * t") + "    def sample(): return torch.randn(9, 4), 1, 3\n"
    inputs = {"t": "float in 0.1..2", "k": "int in 1..8"}
    manifest = export(source, inputs, sample_inputs="pkg.m:sample").manifest
    assert [(i.name, i.number) for i in manifest.inputs] == [
        ("x", None),
        ("t", "float"),
        ("k", "int"),
    ]
    assert export(source, {"k": "int in 4..8"}, sample_inputs="pkg.m:sample").error.strip() == (
        '//pkg:m: inputs["k"]: the spec says int in 4..8, the sample is 3'
    )
    assert export(source, {"mode": "'max'"}, sample_inputs="pkg.m:sample").error.strip() == (
        '//pkg:m: inputs["mode"] is a value, but sample_inputs gives the values of all arguments '
        "that do not vary: return it there"
    )


def test_the_program_is_its_own_reference(export: Export) -> None:
    result = export(SAMPLER, SAMPLER_INPUTS, SAMPLER_DIMS)
    weights = read_weights(result.weights)
    program = load_program(result.graph, result.manifest, weights, flat=True)
    call = ProgramReference(program, result.manifest).call({"n": 3, "k": 4}, seed=0)
    temperature = call.inputs["temperature"]
    assert temperature.dtype == torch.float64 and temperature.shape == ()
    assert 0.1 <= temperature.item() <= 2 and call.inputs["k"].item() == 4
    expected = eager_sampler(call.inputs["x"], temperature.item(), 4)
    for actual, wanted in zip(call.outputs.values(), expected, strict=True):
        torch.testing.assert_close(actual, wanted)


CACHE = 'self.register_buffer("cache", torch.zeros(2, 10, 4))'


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("self.cache[:, i] = x", "float32[2, 4]"),
        ("self.cache[0, i] = x", "float32[4]"),
        ("self.cache[..., i, 1:3] = x", "float32[1, 2]"),
        ("self.cache[:, i, None] += x[:, None]", "float32[2, 4]"),
        ("self.cache[1, i, 2] = 5", "float32[2]"),
    ],
)
@pytest.mark.parametrize("index", ["int in 0..1", "int64[] in -2..1"])
def test_assignments_at_an_index_that_varies(
    export: Export, statement: str, value: str, index: str
) -> None:
    source = module(f"{statement}\nreturn self.cache.sum((0, 2))", CACHE, "x, i")
    result = export(source, {"x": value, "i": index}, {})
    (buffer,) = (c for c in result.manifest.constants if c.name == "cache")
    assert buffer.mutated
    program = result.program().module()
    cache = torch.zeros(2, 10, 4)
    x = torch.randn([int(n) for n in value[8:-1].split(",")])
    for number in (0, 1):
        i = number if index.startswith("int in") else torch.tensor(number)
        scope = {"self": type("Model", (), {"cache": cache}), "x": x, "i": number}
        exec(statement, scope)
        torch.testing.assert_close(program(x, i), cache.sum((0, 2)))


def test_a_list_beside_such_an_index_is_refused(export: Export) -> None:
    source = module("self.cache[i, [1, 2]] = x\nreturn x", CACHE, "x, i")
    error = fails(export, source, {"x": "float32[2, 4]", "i": "int64[] in 0..1"}, {})
    assert "self.cache[i, [1, 2]] = x" in error
    assert error.endswith(
        "  A tensor of one integer that is an index may need a dim: x[i.reshape(1)] in place of "
        "x[i].\n"
    )
