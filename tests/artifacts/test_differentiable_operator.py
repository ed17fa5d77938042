"""Training with a compiled forward and a compiled backward pass, and no compiler."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.artifacts import fused_source

# As `from tests.artifacts import fused_op`, which linters don't find in the source tree.
fused_op: Any = importlib.import_module("tests.artifacts.fused_op")

# What starts a compiler starts a process.
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.system")

started: list[str] = []
sys.addaudithook(lambda event, _: started.append(event) if event in _STARTS else None)


def _inputs(batch: int, keys: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(batch + keys)
    shapes = [(batch, 4), (4,), (4,), (batch, 3, 4), (batch, keys, 4), (batch, keys, 2)]
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]


@pytest.mark.parametrize(("batch", "keys"), [(3, 5), (1, 1), (2, 2), (16, 2)])
@pytest.mark.parametrize("output", [0, 1])
def test_gradcheck(batch: int, keys: int, output: int) -> None:
    inputs = _inputs(batch, keys)
    assert torch.autograd.gradcheck(lambda *x: fused_op(*x)[output], inputs)


def _train(function: Callable[..., Any], steps: int) -> list[torch.Tensor]:
    """The arguments after some steps of an optimizer."""
    values = _inputs(4, 3)
    optimizer = torch.optim.SGD(values, lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        activated, attended = function(*values)
        (activated.square().mean() + attended.square().mean()).backward()
        optimizer.step()
    return values


def test_training_is_eager_pytorchs_and_starts_no_process() -> None:
    expected = _train(fused_source.build(), 5)
    started.clear()
    actual = _train(fused_op, 5)
    assert started == []
    torch.testing.assert_close(actual, expected)


def test_training_under_torch_compile() -> None:
    function = torch.compile(
        lambda *x: [y * 1 for y in fused_op(*x)], fullgraph=True, dynamic=True, backend="aot_eager"
    )
    torch.testing.assert_close(_train(function, 2), _train(fused_source.build(), 2))


def test_some_arguments_alone_are_trained() -> None:
    inputs = _inputs(2, 3)
    x = inputs[0]
    fixed = [value.detach() for value in inputs[1:]]
    (found,) = torch.autograd.grad(fused_op(x, *fixed)[0].sum(), [x])
    (expected,) = torch.autograd.grad(fused_source.build()(x, *fixed)[0].sum(), [x])
    torch.testing.assert_close(found, expected)


def test_a_second_derivative_is_refused_by_name() -> None:
    inputs = _inputs(2, 3)
    (first,) = torch.autograd.grad(fused_op(*inputs)[0].sum(), [inputs[0]], create_graph=True)
    with pytest.raises(RuntimeError, match="artifacts::fused_backward has no backward"):
        torch.autograd.grad(first.sum(), [inputs[0]])


def test_pytorchs_own_check() -> None:
    torch.library.opcheck(fused_op, tuple(_inputs(2, 3)))
