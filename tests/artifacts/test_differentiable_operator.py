"""Training with a compiled forward and a compiled backward pass, and no compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.artifacts import fused_source, processes

# As `from tests.artifacts import fused_op`, which linters don't find in the source tree.
fused_op: Any = importlib.import_module("tests.artifacts.fused_op")


def _inputs(batch: int, keys: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(batch + keys)
    shapes = [(batch, 4), (4,), (4,), (batch, 3, 4), (batch, keys, 4), (batch, keys, 2)]
    varied = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]
    return [*varied, torch.tensor([4, 0, 4])]


def _loss(function: Callable[..., Any], values: Sequence[torch.Tensor]) -> torch.Tensor:
    outputs = function(*values)
    total: torch.Tensor = sum(output.square().mean() for output in outputs[:3])
    return total


@pytest.mark.parametrize(("batch", "keys"), [(3, 5), (1, 1), (2, 2), (16, 2)])
@pytest.mark.parametrize("output", [0, 1, 2])
def test_gradcheck(batch: int, keys: int, output: int) -> None:
    inputs = _inputs(batch, keys)
    assert torch.autograd.gradcheck(lambda *x: fused_op(*x)[output], inputs)


def test_all_outputs() -> None:
    inputs = _inputs(3, 5)
    torch.testing.assert_close(fused_op(*inputs), fused_source.build()(*inputs))
    assert not fused_op(*inputs)[3].requires_grad


def test_the_forward_pass_of_training_runs_where_a_gradient_is_required() -> None:
    inputs = _inputs(3, 5)

    def called(*values: torch.Tensor) -> set[str]:
        with torch.profiler.profile() as profile:
            fused_op(*values)
        return {event.name for event in profile.events() if event.name.startswith("artifacts")}

    assert called(*inputs) == {"artifacts::fused", "artifacts::fused_training"}
    assert called(*[value.detach() for value in inputs]) == {"artifacts::fused"}
    with torch.no_grad():
        assert called(*inputs) == {"artifacts::fused"}


def _train(function: Callable[..., Any], steps: int) -> list[torch.Tensor]:
    """The arguments after some steps of an optimizer."""
    values = _inputs(4, 3)
    optimizer = torch.optim.SGD(values[:6], lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.autograd.backward(_loss(function, values))
        optimizer.step()
    return values


def test_training_is_eager_pytorchs_and_starts_no_process() -> None:
    expected = _train(fused_source.build(), 5)
    with processes.started() as started:
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
    """Also where the backward pass does not take the input whose derivative it is."""
    for i in range(6):
        inputs = _inputs(2, 3)
        loss = _loss(fused_op, inputs)
        (first,) = torch.autograd.grad(loss, [inputs[i]], create_graph=True)
        with pytest.raises(RuntimeError, match="artifacts::fused has no second derivative"):
            torch.autograd.grad(loss + first.sum(), [inputs[i]])


def test_what_is_kept_is_not_to_be_changed() -> None:
    inputs = _inputs(2, 3)
    attended = fused_op(*inputs)[1]
    with torch.no_grad():
        inputs[3].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        attended.sum().backward()


def test_pytorchs_own_check() -> None:
    torch.library.opcheck(fused_op, tuple(_inputs(2, 3)))
