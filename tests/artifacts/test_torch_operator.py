"""A compiled model as an operator of PyTorch, in a process that compiles nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.artifacts import mixing, processes

# As `from tests.artifacts import mixer_op`, which linters don't find in the source tree.
mixer_op: Any = importlib.import_module("tests.artifacts.mixer_op")


def _inputs(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch)
    return (
        torch.randn(batch, 8, generator=generator),
        torch.randn(2 * batch, 8, generator=generator),
    )


def _operator(x: torch.Tensor, pairs: torch.Tensor) -> Any:
    return mixer_op(x, pairs)


def _expected(batch: int) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return tuple(mixing.build()(*_inputs(batch)).values())


class Larger(torch.nn.Module):
    """A model with the operator in the middle."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.linear(x))
        mixed, total = _operator(y, torch.cat([y, y + 1]))
        result: torch.Tensor = mixed * 2 + total
        return result


@pytest.mark.parametrize("batch", [1, 5, 16])
def test_eager_mode(batch: int) -> None:
    torch.testing.assert_close(_operator(*_inputs(batch)), _expected(batch))
    by_name = torch.ops.tests_artifacts.mixer_op(*_inputs(batch))
    torch.testing.assert_close(by_name, _expected(batch))


def test_no_process_is_started() -> None:
    with processes.started() as started:
        for batch in range(1, 17):
            _operator(*_inputs(batch))
    assert started == []


def test_a_process_would_be_noticed() -> None:
    with processes.started() as started:
        subprocess.run([sys.executable, "-c", ""], check=True)
    assert {"subprocess.Popen", "a child process"} <= set(started)


def test_torch_compile_in_one_graph() -> None:
    model = Larger().eval().requires_grad_(False)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in (2, 5, 16):
        x, _ = _inputs(batch)
        torch.testing.assert_close(compiled(x), model(x))


def test_torch_export_of_a_larger_model() -> None:
    model = Larger().eval()
    sizes = {"x": {0: torch.export.Dim("batch", min=1, max=16)}}
    program = torch.export.export(model, (_inputs(3)[0],), dynamic_shapes=sizes)
    assert "torch.ops.tests_artifacts.mixer_op.default" in program.graph_module.code
    for batch in (1, 5, 16):
        x, _ = _inputs(batch)
        torch.testing.assert_close(program.module()(x), model(x))


def test_autocast_casts_to_what_was_compiled() -> None:
    model = Larger().eval()
    x, _ = _inputs(4)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        mixed = model(x)
    with torch.no_grad():
        torch.testing.assert_close(mixed, model(x), rtol=0.05, atol=0.05)


def test_ranges_are_checked_by_the_operators_name() -> None:
    with pytest.raises(ValueError) as error:
        _operator(*_inputs(17))
    assert str(error.value) == (
        'tests_artifacts::mixer_op: input "x": dim 0 (batch) is 17, must be in 1..16'
    )


def test_pytorchs_own_check() -> None:
    torch.library.opcheck(torch.ops.tests_artifacts.mixer_op.default, _inputs(3))
