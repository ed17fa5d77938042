"""The backward pass of a program, as a program."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.process import cli

from tests.unit.driver.harness import Export, Result, module

MLP = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.out = torch.nn.Linear(6, 3).double()

        def forward(self, x, w):
            return self.out(torch.nn.functional.gelu(x @ w))

    def build():
        return Net()
"""

NM = {"n": "2..9", "m": "2..9"}


@dataclasses.dataclass(frozen=True)
class Pair:
    """The two programs of a training step."""

    forward: Result
    backward: Result

    @property
    def kept(self) -> list[str]:
        """What the backward pass takes beside gradients, with the shapes."""
        inputs = self.backward.manifest.inputs
        return [
            f"{i.name}[{', '.join(map(str, i.shape))}]"
            for i in inputs
            if not i.name.startswith("grad_")
        ]


Differentiate = Callable[[Result], Pair]

LAYER_NORM_GELU = """
    import torch
    import torch.nn.functional as F

    class Net(torch.nn.Module):
        def forward(self, x, weight, bias):
            return F.gelu(F.layer_norm(x, (x.shape[-1],), weight, bias))

    def build():
        return Net()
"""

ATTENTION = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, q, k, v):
            return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v

    def build():
        return Net()
"""

WITH_WEIGHTS = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 3).double())

        def forward(self, x, index, unused):
            y = torch.tanh(self.inner(x)) + torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
            return {"picked": y[index], "largest": y.argmax(1), "all": y}

    def build():
        return Net()
"""


@pytest.fixture
def differentiate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Differentiate:
    def run(forward: Result) -> Pair:
        assert forward.code == 0, forward.error
        outs = {
            part + name: tmp_path / f"{part}{name}"
            for part in ("training_", "")
            for name in ("graph", "weights", "manifest", "locations")
        }
        spec = {
            "label": "//pkg:op",
            "labels": ["//pkg:op_training", "//pkg:op_backward"],
            "names": ["op_training", "op_backward"],
        }
        code = cli.main(
            [
                "differentiate",
                f"--spec={json.dumps(spec)}",
                f"--graph={forward.graph}",
                f"--weights={forward.weights}",
                f"--manifest={forward.manifest_path}",
                *[f"--out_{name}={path}" for name, path in outs.items()],
            ]
        )
        paths = list(outs.values())
        error = capsys.readouterr().err
        return Pair(Result(code, error, *paths[:4]), Result(code, error, *paths[4:]))

    return run


class Function(torch.autograd.Function):
    """The two programs as PyTorch's function, for gradcheck."""

    @staticmethod
    def forward(ctx, forward, backward, names, *inputs):  # type: ignore[no-untyped-def]
        outputs = forward(*inputs)
        values = {f"input_{name}": value for name, value in zip(names[0], inputs)} | outputs
        ctx.backward = backward
        kept = [name for name in names[1] if not name.startswith("grad_")]
        ctx.save_for_backward(*[values[name] for name in kept])
        ctx.varied = [value.is_floating_point() for value in inputs]
        returned = [v for n, v in outputs.items() if n.startswith("output_")]
        ctx.mark_non_differentiable(*[v for v in returned if not v.is_floating_point()])
        ctx.returned = [v.is_floating_point() for v in returned]
        return tuple(returned)

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        given = [g for g, floating in zip(gradients, ctx.returned) if floating]
        found = iter(ctx.backward(*ctx.saved_tensors, *given).values())
        return None, None, None, *[next(found) if varied else None for varied in ctx.varied]


def random(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def gradcheck(pair: Pair, *inputs: torch.Tensor) -> None:
    apply: Any = Function.apply
    parts = [pair.forward, pair.backward]
    names = [[i.name for i in part.manifest.inputs] for part in parts]
    modules = [part.program().module(check_guards=False) for part in parts]

    def floating(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(y for y in apply(*modules, names, *values) if y.is_floating_point())

    assert torch.autograd.gradcheck(floating, inputs)


def test_layer_norm_and_gelu(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        LAYER_NORM_GELU,
        {"x": "float64[batch, 4]", "weight": "float64[4]", "bias": "float64[4]"},
        {"batch": "1..16"},
    )
    pair = differentiate(forward)
    manifest = pair.backward.manifest
    assert [str(s) for s in manifest.outputs[0].shape] == ["batch", "4"]
    assert [o.name for o in manifest.outputs] == ["grad_x", "grad_weight", "grad_bias"]
    assert [i.name for i in manifest.inputs][-1] == "grad_output"
    # The mean and the deviation of each row are not computed again.
    assert {"saved_1[batch, 1]", "saved_2[batch, 1]"} <= set(pair.kept)
    assert pair.forward.manifest.outputs[0].name == "output_output"
    for part in (pair.forward, pair.backward):
        assert part.manifest.dims == forward.manifest.dims
        assert part.manifest.guards == ()
    assert pair.forward.manifest.label == "//pkg:op_training"
    assert pair.backward.manifest.label == "//pkg:op_backward"
    for batch in (1, 3, 16):
        gradcheck(pair, random(batch, 4), random(4), random(4))


def test_attention(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        ATTENTION,
        {"q": "float64[batch, n, 4]", "k": "float64[batch, m, 4]", "v": "float64[batch, m, 2]"},
        {"batch": "1..8", "n": "1..8", "m": "1..8"},
    )
    pair = differentiate(forward)
    called = [node.target for node in pair.backward.program().graph.nodes]
    assert torch.ops.aten._softmax.default not in called
    for batch, n, m in ((2, 3, 5), (1, 1, 1), (3, 3, 3), (1, 8, 2)):
        gradcheck(pair, random(batch, n, 4), random(batch, m, 4), random(batch, m, 2))


def test_layers_on_several_dims(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        MLP,
        {"x": "float64[batch, seq, 4]", "w": "float64[4, 6]"},
        {"batch": "1..8", "seq": "1..8"},
    )
    pair = differentiate(forward)
    # Matrices of batch*seq rows are no inputs of a program: they are kept in another shape.
    assert all("batch*seq" not in kept for kept in pair.kept)
    called = [node.target for node in pair.backward.program().graph.nodes]
    assert torch.ops.aten.addmm.default not in called
    assert {c.name for c in pair.backward.manifest.constants} == {"out.weight"}
    for batch, seq in ((2, 3), (1, 1), (3, 3)):
        gradcheck(pair, random(batch, seq, 4), random(4, 6))


def test_sizes_alone_are_not_a_reason_to_keep(export: Export, differentiate: Differentiate) -> None:
    """The gradient of a sum needs the sizes of its input: an input is kept for its dim alone."""
    source = module("return {'rows': x.softmax(1), 'columns': y.sum(0)}", arguments="x, y")
    dims = {"batch": "1..8", "other": "1..8"}
    inputs = {"x": "float64[batch, 4]", "y": "float64[other, 4]"}
    pair = differentiate(export(source, inputs, dims))
    assert pair.kept == ["input_y[other, 4]", "output_rows[batch, 4]"]
    assert [o.name for o in pair.forward.manifest.outputs] == ["output_rows", "output_columns"]
    gradcheck(pair, random(3, 4), random(5, 4))


def test_what_dims_say_of_the_backward_pass(export: Export, differentiate: Differentiate) -> None:
    """A dim that it does not need is none of its dims."""
    inputs = {"x": "float64[n, 4]", "index": "int64[m] in 0..1"}
    forward = export(module("return x * 2, index + 1", arguments="x, index"), inputs, NM)
    pair = differentiate(forward)
    assert [dim.name for dim in forward.manifest.dims] == ["n", "m"]
    assert [dim.name for dim in pair.backward.manifest.dims] == ["n"]
    assert pair.kept == []
    gradcheck(pair, random(3, 4), torch.tensor([0, 1]))


def test_weights_integers_and_unused_inputs(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        WITH_WEIGHTS,
        {"x": "float64[n, 4]", "index": "int64[2] in 0..1", "unused": "float64[n]"},
        {"n": "2..9"},
    )
    pair = differentiate(forward)
    names = {constant.name for constant in pair.backward.manifest.constants}
    assert names == {"inner.0.weight"}
    (index,) = [i for i in pair.backward.manifest.inputs if i.name == "input_index"]
    assert index.values == (0, 1)
    gradients = [i.name for i in pair.backward.manifest.inputs if i.name.startswith("grad_")]
    assert gradients == ["grad_picked", "grad_all"]
    gradcheck(pair, random(5, 4), torch.tensor([1, 0]), random(5))


def test_random_numbers_are_those_of_the_forward_pass(
    export: Export, differentiate: Differentiate
) -> None:
    source = module("return torch.rand_like(x) * x")
    pair = differentiate(export(source, {"x": "float64[3, 4]"}))
    assert pair.kept == ["saved_0[3, 4]"]


def test_the_same_bytes(export: Export, differentiate: Differentiate) -> None:
    forward = export(ATTENTION, dict.fromkeys("qkv", "float64[batch, 3, 4]"), {"batch": "1..8"})
    pair = differentiate(forward)
    first = [part.graph.read_bytes() for part in (pair.forward, pair.backward)]
    pair = differentiate(forward)
    assert [part.graph.read_bytes() for part in (pair.forward, pair.backward)] == first


@pytest.mark.parametrize(
    ("body", "inputs", "message"),
    [
        (
            "x.add_(1)\n            return x * 2",
            {"x": "float32[3]"},
            'writes to its input "x". Return the new value as an output.',
        ),
        ("return x * 2", {"x": "int64[3]"}, "has no input of a floating-point dtype."),
        ("return x > 0", {"x": "float32[3]"}, "has no output of a floating-point dtype."),
    ],
)
def test_what_has_no_backward_pass(
    export: Export, differentiate: Differentiate, body: str, inputs: dict[str, str], message: str
) -> None:
    source = f"""
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            {body}

    def build():
        return Net()
"""
    found = differentiate(export(source, inputs)).backward
    assert found.code == 1
    assert "//pkg:op: differentiable = True, but " in found.error
    assert message in found.error
