"""The backward pass of a program, as a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.process import cli

from tests.unit.driver.harness import Export, Result

Differentiate = Callable[[Result], Result]

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
    def run(forward: Result) -> Result:
        assert forward.code == 0, forward.error
        outs = {
            n: tmp_path / f"backward.{n}" for n in ("graph", "weights", "manifest", "locations")
        }
        spec = {"label": "//pkg:op", "name": "op_backward"}
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
        error = capsys.readouterr().err
        return Result(
            code, error, *(outs[n] for n in ("graph", "weights", "manifest", "locations"))
        )

    return run


class Function(torch.autograd.Function):
    """The two programs as PyTorch's function, for gradcheck."""

    @staticmethod
    def forward(ctx, forward, backward, *inputs):  # type: ignore[no-untyped-def]
        ctx.backward = backward
        ctx.save_for_backward(*inputs)
        return forward(*inputs)

    @staticmethod
    def backward(ctx, *gradients):  # type: ignore[no-untyped-def]
        found = ctx.backward(*ctx.saved_tensors, *gradients)
        return None, None, *found.values()


def random(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def gradcheck(forward: Result, backward: Result, *inputs: torch.Tensor) -> None:
    first, second = forward.program().module(), backward.program().module()
    apply: Any = Function.apply
    assert torch.autograd.gradcheck(lambda *x: apply(first, second, *x), inputs)


def test_layer_norm_and_gelu(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        LAYER_NORM_GELU,
        {"x": "float64[batch, 4]", "weight": "float64[4]", "bias": "float64[4]"},
        {"batch": "1..16"},
    )
    backward = differentiate(forward)
    assert [i.name for i in backward.manifest.inputs] == ["x", "weight", "bias", "grad_output"]
    assert [o.name for o in backward.manifest.outputs] == ["grad_x", "grad_weight", "grad_bias"]
    assert [str(s) for s in backward.manifest.outputs[0].shape] == ["batch", "4"]
    assert backward.manifest.dims == forward.manifest.dims
    assert backward.manifest.guards == ()
    for batch in (1, 3, 16):
        gradcheck(forward, backward, random(batch, 4), random(4), random(4))


def test_attention(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        ATTENTION,
        {"q": "float64[batch, n, 4]", "k": "float64[batch, m, 4]", "v": "float64[batch, m, 2]"},
        {"batch": "1..8", "n": "1..8", "m": "1..8"},
    )
    backward = differentiate(forward)
    for batch, n, m in ((2, 3, 5), (1, 1, 1), (3, 3, 3), (1, 8, 2)):
        gradcheck(forward, backward, random(batch, n, 4), random(batch, m, 4), random(batch, m, 2))


def test_weights_integers_and_unused_inputs(export: Export, differentiate: Differentiate) -> None:
    forward = export(
        WITH_WEIGHTS,
        {"x": "float64[n, 4]", "index": "int64[2] in 0..1", "unused": "float64[n]"},
        {"n": "2..9"},
    )
    backward = differentiate(forward)
    names = {constant.name for constant in backward.manifest.constants}
    assert {"inner.0.weight", "inner.0.bias"} <= names
    expected = ["x", "index", "unused", "grad_picked", "grad_all"]
    assert [i.name for i in backward.manifest.inputs] == expected
    x, index, unused = random(5, 4), torch.tensor([1, 0]), torch.zeros(5, dtype=torch.float64)
    found = backward.program().module()(
        x, index, unused, torch.ones(2, 3).double(), torch.ones(5, 3).double()
    )
    out = forward.program().module()(x, index, unused)
    (out["picked"].sum() + out["all"].sum()).backward()
    torch.testing.assert_close(found["grad_x"], x.grad)
    assert found["grad_unused"].tolist() == [0] * 5


def test_the_same_bytes(export: Export, differentiate: Differentiate) -> None:
    forward = export(ATTENTION, dict.fromkeys("qkv", "float64[batch, 3, 4]"), {"batch": "1..8"})
    backward = differentiate(forward)
    first = backward.graph.read_bytes()
    assert differentiate(forward).graph.read_bytes() == first


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
    found = differentiate(export(source, inputs))
    assert found.code == 1
    assert "//pkg:op: differentiable = True, but " in found.error
    assert message in found.error
