"""Tensors that lie in the memory of a concatenation: nobody gets it while one of them is read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from tests.unit.driver.inductor import harness

WIDTH = 24


class Net(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.weights = nn.Parameter(torch.randn(3, WIDTH, WIDTH) / WIDTH**0.5)

    def forward(self, x: Tensor) -> Any:
        return self.function(x, *self.weights)


def read_later(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A product of as many rows as the concatenation has comes before the part is read."""
    part = torch.tanh(x)
    y = torch.cat([part, x + 1]) @ a
    z = y @ b
    return torch.sigmoid(z[: x.shape[0]] @ c) * part + z[x.shape[0] :]


def freed(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Nobody reads the part or the concatenation any more when two products are computed."""
    part = torch.tanh(x)
    y = torch.cat([part, x + 1]) @ a
    u = part.flip(0) + y[: x.shape[0]]
    z = y @ b
    v = (u @ c) @ a
    return torch.sigmoid(z[: x.shape[0]]) * v + z[x.shape[0] :]


def in_place(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A loop could write its result to the part that it reads."""
    part = torch.tanh(x)
    y = torch.cat([part, x + 1]) @ a
    u = torch.sigmoid(part + y[: x.shape[0]])
    z = y @ b
    return torch.sigmoid(z[: x.shape[0]]) * (u @ c) + z[x.shape[0] :] + u


def nested(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A concatenation that is a part of another one."""
    part = torch.tanh(x)
    inner = torch.cat([part, x + 1])
    y = torch.cat([inner, x * 3, x * 5]) @ a
    z = torch.sigmoid(y) @ b
    return z[: x.shape[0]] + part @ c + inner[x.shape[0] :] @ a


def returned(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    part = torch.tanh(x)
    y = torch.cat([part, x + 1]) @ a
    return part, torch.sigmoid(y) @ b @ c


FUNCTIONS = (read_later, freed, in_place, nested, returned)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[ctypes.CDLL, Path]:
    """The library of all programs, and their folders."""
    root = tmp_path_factory.mktemp("parts")
    shapes = ({0: Dim("n", max=64)},)
    models: dict[str, Any] = {
        function.__name__: (Net(function).eval(), (torch.randn(5, WIDTH),), shapes)
        for function in FUNCTIONS
    }
    return harness.build_programs(root, models, harness.ISA), root


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results(built: tuple[ctypes.CDLL, Path], function: Callable[..., Any]) -> None:
    library, root = built
    folder = root / function.__name__
    assert "// alias" in (folder / "wrapper.cpp").read_text(encoding="utf-8")
    compiled = harness.Compiled(library, function.__name__, folder)
    x = torch.randn(7, WIDTH)
    with torch.no_grad():
        expected = Net(function).eval()(x)
        torch.testing.assert_close(
            compiled(x), [*expected] if isinstance(expected, tuple) else [expected]
        )
