"""Recurrent layers whose number of steps is a dim: one operator in the program, for any number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from tests.unit.driver.harness import Export, codegen

LAYERS = """
    import torch
    from torch import nn

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.{kind}(4, 8{options})

        def forward(self, {arguments}):
            {body}

    build = Layers
"""
OPTIONS = ", num_layers=2, bidirectional=True, batch_first=True, bias=False"
KINDS = {
    "LSTM": "aten.lstm.input",
    "GRU": "aten.gru.input",
    "RNN": "aten.rnn_tanh.input",
    "RNN_relu": "aten.rnn_relu.input",
}
INPUTS = {"x": "float32[batch, steps, 4]"}
DIMS = {"batch": "1..16", "steps": "1..64"}


def source(
    kind: str, options: str = "", arguments: str = "x", body: str = "return self.layer(x)"
) -> str:
    kind, _, nonlinearity = kind.partition("_")
    options += f", nonlinearity='{nonlinearity}'" if nonlinearity else ""
    return LAYERS.format(kind=kind, options=options, arguments=arguments, body=body)


def operators(program: torch.export.ExportedProgram) -> Counter[str]:
    return Counter(str(n.target) for n in program.graph.nodes if n.op == "call_function")


def called(operator: str) -> str:
    _, name, overload = operator.split(".")
    return f'aoti_dispatch::Call("aten::{name}", "{overload}", stack)'


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_it_stays_whole(export: Export, kind: str, strict: bool) -> None:
    result = export(source(kind, OPTIONS), INPUTS, DIMS, strict=strict)
    assert result.manifest.guards == ()
    assert operators(result.program())[KINDS[kind]] == 1
    assert codegen(result).count(called(KINDS[kind])) == 1
    output = result.manifest.outputs[0]
    assert [str(size) for size in output.shape] == ["batch", "steps", "16"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_constant_number_of_steps_is_written_out(export: Export, kind: str) -> None:
    result = export(source(kind, OPTIONS), {"x": "float32[batch, 3, 4]"}, {"batch": "1..16"})
    code = codegen(result)
    assert "aoti_dispatch" not in code
    assert ("aoti_torch_cpu_mkldnn_rnn_layer" in code) == (kind == "LSTM")


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_constant_number_of_steps_is_one_call(export: Export, kind: str) -> None:
    result = export(source(kind, OPTIONS), {"x": "float32[batch, 9, 4]"}, {"batch": "1..16"})
    code = codegen(result)
    assert code.count(called(KINDS[kind])) == 1
    assert "mkldnn_rnn_layer" not in code


@pytest.mark.parametrize(
    ("kind", "options", "inputs", "shape"),
    [
        ("LSTM", ", proj_size=3", {"x": "float32[steps, batch, 4]"}, ["steps", "batch", "3"]),
        ("LSTM", "", {"x": "float32[steps, 4]"}, ["steps", "8"]),
        ("GRU", ", batch_first=True", {"x": "float32[steps, 4]"}, ["steps", "8"]),
        ("GRU", "", {"x": "float32[2*steps, batch, 4]"}, ["2*steps", "batch", "8"]),
        ("GRU", ", dtype=torch.bfloat16", {"x": "bfloat16[steps, 1, 4]"}, ["steps", "1", "8"]),
        ("RNN", ", dtype=torch.float64", {"x": "float64[steps, 1, 4]"}, ["steps", "1", "8"]),
    ],
)
def test_shapes(
    export: Export, kind: str, options: str, inputs: dict[str, str], shape: list[str]
) -> None:
    dims = {name: size for name, size in DIMS.items() if name in str(inputs)}
    result = export(source(kind, options), inputs, dims)
    assert [str(size) for size in result.manifest.outputs[0].shape] == shape
    assert called(KINDS[kind]) in codegen(result)


def test_given_states(export: Export) -> None:
    body = "return self.layer(x, (h, c))"
    state = "float32[1, batch, 8]"
    inputs = {**INPUTS, "h": state, "c": state}
    result = export(source("LSTM", ", batch_first=True", "x, h, c", body), inputs, DIMS)
    assert result.manifest.guards == ()
    program = result.program()
    x, h, c = torch.randn(5, 7, 4), torch.randn(1, 5, 8), torch.randn(1, 5, 8)
    layer = torch.nn.LSTM(4, 8, batch_first=True)
    layer.load_state_dict({k.removeprefix("layer."): v for k, v in program.state_dict.items()})
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(layer(x, (h, c)))
        actual = torch.utils._pytree.tree_leaves(program.module(check_guards=False)(x, h, c))
    torch.testing.assert_close(actual, expected)


STATEFUL = """
    import torch
    from torch import nn

    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(4, 8, batch_first=True)
            self.register_buffer("state", torch.zeros(1, 1, 8))

        def forward(self, x):
            y, last = self.layer(x, self.state)
            self.state.copy_(last)
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (y,))

    build = Stateful
"""


def test_state_and_branches(export: Export) -> None:
    """Control flow has the program made functional, which must not write out the steps either."""
    result = export(STATEFUL, {"x": "float32[1, steps, 4]"}, {"steps": "2..64"})
    assert [c.name for c in result.manifest.constants if c.mutated] == ["state"]
    assert called("aten.gru.input") in codegen(result)


def test_other_decompositions(export: Export) -> None:
    body = "return torch.nn.functional.silu(self.layer(x)[0])"
    code = source("GRU", ", batch_first=True", "x", body)
    result = export(code, INPUTS, DIMS, decompositions=["core_aten"])
    found = operators(result.program())
    assert found["aten.gru.input"] == 1 and "aten.silu.default" not in found


def test_stock_pytorch_reads_the_program(export: Export, tmp_path: Path) -> None:
    program = export(source("LSTM", OPTIONS), INPUTS, DIMS).program()
    torch.export.save(program, tmp_path / "m.pt2")
    loaded = torch.export.load(tmp_path / "m.pt2")
    for batch, steps in ((1, 1), (3, 50)):
        x = torch.randn(batch, steps, 4)
        actual = torch.utils._pytree.tree_leaves(loaded.module(check_guards=False)(x))
        expected = torch.utils._pytree.tree_leaves(program.module(check_guards=False)(x))
        torch.testing.assert_close(actual, expected)
        assert actual[0].shape == (batch, steps, 16)


def test_packed_sequences(export: Export) -> None:
    packed = "nn.utils.rnn.pack_padded_sequence(x, n, True, False)"
    body = f"return nn.utils.rnn.pad_packed_sequence(self.layer({packed})[0], True)[0]"
    inputs = {**INPUTS, "n": "int64[batch] in 1..2"}
    result = export(source("GRU", "", "x, n", body), inputs, {**DIMS, "steps": "2..64"})
    assert result.code != 0
    assert result.error == (
        "//pkg:m: torch.export failed: forward() packs sequences, which no exported program can\n"
        f"  pkg/m.py:11 in forward\n    {body}\n"
        "  nn.LSTM, nn.GRU and nn.RNN take any number of steps of a padded tensor "
        '("float32[batch, steps, 4]"). Take the last result of each sequence by its length, and '
        "call the model for sequences of one length where a layer reads them backwards.\n"
    )
