"""Exporting another method than forward(), and what of the module's tensors it takes along."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from tests.unit.driver.harness import Export, codegen

# Encoder and decoder share the embedding, whose second name is the head's.
SPEECH = """
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.Linear(4, 4)

        def forward(self, x):
            return torch.tanh(self.mix(x))

        def twice(self, x, *, scale=2.0):
            return self(self(x)) * scale

    class Speech(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(6, 4)
            self.encoder = Encoder()
            self.head = torch.nn.Linear(4, 6, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("calls", torch.zeros(1))

        def encode(self, tokens):
            self.calls.add_(1)
            return self.encoder(self.embed(tokens))

        def decode(self, memory, step):
            return self.head(memory) * step + self.calls

        def forward(self, tokens):
            return self.decode(self.encode(tokens), torch.ones(1))

        def outer(self, tokens):
            return self(tokens) + self.forward(tokens)

        def _private(self, tokens):
            return tokens

        @staticmethod
        def plus(x):
            return 2 * x + torch.tensor([1.0, 2.0, 3.0, 4.0])

        label = "speech"

    build = Speech
"""
TOKENS = {"tokens": "int64[1, n] in 0..5"}
MEMORY = {"memory": "float32[1, n, 4]"}
N = {"n": "2..9"}


@pytest.mark.parametrize("strict", [False, True])
def test_a_method_takes_what_it_reads(export: Export, strict: bool) -> None:
    result = export(SPEECH, TOKENS, N, method="encode", strict=strict)
    names = ["calls", "embed.weight", "encoder.mix.bias", "encoder.mix.weight"]
    assert sorted(c.name for c in result.manifest.constants) == names
    assert [c.name for c in result.manifest.constants if c.mutated] == ["calls"]
    assert sorted(load_file(result.weights)) == names
    program = result.program()
    tokens = torch.tensor([[1, 5, 0]])
    weights = program.state_dict
    x = weights["embed.weight"][tokens]
    x = torch.tanh(x @ weights["encoder.mix.weight"].T + weights["encoder.mix.bias"])
    (actual,) = torch.utils._pytree.tree_leaves(program.module(check_guards=False)(tokens))
    torch.testing.assert_close(actual, x)


def test_tied_tensors_have_one_name_in_all_methods(export: Export) -> None:
    inputs = {**MEMORY, "step": "float32[1]"}
    result = export(SPEECH, inputs, N, method="decode")
    # The method reads head.weight, of which embed.weight is the first name.
    assert sorted(c.name for c in result.manifest.constants) == ["calls", "embed.weight"]
    assert [i.name for i in result.manifest.inputs] == ["memory", "step"]
    assert not any(c.mutated for c in result.manifest.constants)
    assert "kernel" in codegen(result)


@pytest.mark.parametrize(
    ("method", "inputs", "names"),
    [
        ("encoder", {"x": "float32[n, 4]"}, ["encoder.mix.bias", "encoder.mix.weight"]),
        ("encoder.forward", {"x": "float32[n, 4]"}, ["encoder.mix.bias", "encoder.mix.weight"]),
        ("encoder.twice", {"x": "float32[n, 4]"}, ["encoder.mix.bias", "encoder.mix.weight"]),
        ("plus", {"x": "float32[n, 4]"}, None),
        (
            "forward",
            TOKENS,
            ["calls", "embed.weight", "encoder.mix.bias", "encoder.mix.weight"],
        ),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_submodules_and_functions(
    export: Export, method: str, inputs: dict[str, str], names: list[str] | None, strict: bool
) -> None:
    result = export(SPEECH, inputs, N, method=method, strict=strict)
    found = sorted(c.name for c in result.manifest.constants)
    assert found == names if names else len(found) == 1
    with torch.no_grad():
        result.program().module(check_guards=False)


def test_a_method_may_call_forward(export: Export) -> None:
    result = export(SPEECH, TOKENS, N, method="outer")
    program = result.program()
    run = program.module(check_guards=False)
    weights = {n: t.clone() for n, t in program.state_dict.items()}

    def forward(tokens: torch.Tensor, calls: float) -> torch.Tensor:
        x = weights["embed.weight"][tokens]
        x = torch.tanh(x @ weights["encoder.mix.weight"].T + weights["encoder.mix.bias"])
        logits: torch.Tensor = x @ weights["embed.weight"].T + calls
        return logits

    tokens = torch.tensor([[3, 0]])
    (actual,) = torch.utils._pytree.tree_leaves(run(tokens))
    torch.testing.assert_close(actual, forward(tokens, 1) + forward(tokens, 2))


def test_other_tensors_change_nothing(export: Export) -> None:
    first = export(SPEECH, {"x": "float32[n, 4]"}, N, method="encoder")
    other = SPEECH.replace("Embedding(6, 4)", "Embedding(7, 4)").replace("(4, 6, b", "(4, 7, b")
    second = export(other, {"x": "float32[n, 4]"}, N, method="encoder")
    assert first.graph.read_bytes() == second.graph.read_bytes()
    assert first.manifest_path.read_bytes() == second.manifest_path.read_bytes()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "encod",
            '//pkg:m: method "encod": Speech has neither a method nor a submodule "encod" '
            '(did you mean "encode"?). Methods: decode, encode, forward, outer, plus. '
            "Submodules: embed, encoder, head.",
        ),
        (
            "encoder.step",
            '//pkg:m: method "encoder.step": its submodule "encoder" (Encoder) has neither a '
            'method nor a submodule "step". Methods: forward, twice. Submodules: mix.',
        ),
        ("double", '//pkg:m: method "double": Speech has neither'),
        ("label", '//pkg:m: method "label": Speech has neither'),
        ("encode.x", '//pkg:m: method "encode.x": Speech has neither a method nor a submodule'),
    ],
)
def test_unknown_method(export: Export, method: str, message: str) -> None:
    result = export(SPEECH, TOKENS, N, method=method)
    assert result.code == 1 and message in result.error


def test_errors_name_the_method(export: Export) -> None:
    result = export(SPEECH, MEMORY, N, method="decode")
    assert result.code == 1
    assert "//pkg:m: inputs: decode() needs step, which inputs does not give." in result.error
    assert "decode(memory, step)" in result.error
    result = export(SPEECH, {**MEMORY, "tokens": "int64[1]"}, N, method="decode")
    assert 'inputs: decode() has no argument "tokens"' in result.error


WRONG = """
    import torch

    class Part(torch.nn.Module):
        total = torch.zeros(3)

        def step(self, x):
            self.total = self.total + x
            return self.total

    class Wrong(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def encode(self, x):
            return {"x": x, ("key",): x}

        def decode(self, x):
            return self.forward() + x

        def forward(self):
            raise ValueError("forward() has no memory")

        def text(self, x):
            return object()

    build = Wrong
"""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("encode", "//pkg:m: encode() returns a dict with the key ('key',)"),
        ("part.step", "//pkg:m: part.step() changes "),
        ("decode", "//pkg:m: decode() fails"),
        ("text", "//pkg:m: text() returns a builtins.object"),
        (None, "//pkg:m: forward() fails"),
    ],
)
def test_errors_say_the_method_in_place_of_forward(
    export: Export, method: str | None, message: str
) -> None:
    result = export(WRONG, {"x": "float32[3]"} if method else {}, method=method)
    assert result.code == 1 and message in result.error
    if method == "decode":  # a line of the source, as it is
        assert "return self.forward() + x" in result.error
