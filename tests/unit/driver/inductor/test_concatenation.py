"""Which convolutions write their results to their places in concatenations."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.inductor import concatenation, convolution_fusion
from aoti_driver.inductor.convolution_epilogue import OPERATOR
from torch import Tensor, nn

from tests.unit.driver.inductor import harness, models


class Net(nn.Module):
    """Images with 4 channels, two convolutions, and a function of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.first, self.second = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 6, 3, padding=1)

    def forward(self, x: Tensor) -> Any:
        return self.function(self.first(x), self.second(x), x)


def fused(net: nn.Module, x: Tensor) -> Any:
    """The graph, which computes the same as the net."""
    with torch.no_grad():
        program = torch.export.export(net.eval(), (x.clone(),))
        module: Any = program.module(check_guards=False)
        concatenation.join(module)
        convolution_fusion.fuse(module)
        torch.testing.assert_close(module(x.clone()), net(x))
    return module.graph


def written(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    both = torch.cat([a, b], 1)
    a.add_(1)
    return both


def view_written(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    both = torch.cat([a, b], 1)
    a[:, 1:].mul_(2)
    return both


def result_written(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    both = torch.cat([a, b], 1)
    total = both.sum()
    both.mul_(2)
    return a * total


# How many of the two convolutions write to a place.
_PLACES: dict[str, tuple[Callable[..., Any], int]] = {
    "both": (lambda a, b, x: torch.cat([a, b, x], 1), 2),
    "counted from the last dim": (lambda a, b, x: torch.cat([a.relu(), x, b], -3), 2),
    "read by others": (lambda a, b, x: (torch.cat([x, b], 1), b.sum(), b[:, 1:].max()), 1),
    "twice": (lambda a, b, x: (torch.cat([a, b], 1), torch.cat([b, a, x], 1) * 2), 2),
    "along rows": (lambda a, b, x: torch.cat([a, x], 2), 0),
    "the same one": (lambda a, b, x: torch.cat([a, b, a], 1), 1),
    "another dtype": (lambda a, b, x: torch.cat([a, x.double()], 1), 0),
    "returned": (lambda a, b, x: (torch.cat([a, b], 1), a), 1),
    "a view is returned": (lambda a, b, x: (torch.cat([a, b], 1), b[:, 2:4]), 1),
    "written": (written, 1),
    "a view is written": (view_written, 1),
    "the result is written": (result_written, 0),
}


@pytest.mark.parametrize("name", _PLACES)
def test_places(name: str) -> None:
    function, count = _PLACES[name]
    graph = fused(Net(function), torch.randn(2, 4, 5, 6))
    nodes = graph.find_nodes(op="call_function", target=OPERATOR)
    assert sum(concatenation.of(node) is not None for node in nodes) == count


# How many tensors are concatenated.
_JOINED: dict[str, tuple[Callable[..., Any], int]] = {
    "chunks": (lambda a, b, x: torch.cat([x, *b.chunk(3, 1), a], 1), 3),
    "from the last dim": (lambda a, b, x: torch.cat([*b.split(4, -3), a], 1), 2),
    "sizes": (lambda a, b, x: torch.cat([*b.split([1, 2, 3], 1), *a.chunk(2, 1)], 1), 2),
    "a part is missing": (lambda a, b, x: torch.cat([*b.chunk(3, 1)[:2], a], 1), 3),
    "another order": (lambda a, b, x: torch.cat([*reversed(b.chunk(3, 1))], 1), 3),
    "another dim": (lambda a, b, x: torch.cat([*x.chunk(2, 2)], 1), 2),
    "written": (lambda a, b, x: torch.cat([(c := b.chunk(2, 1))[0].mul_(2), c[1], a], 1), 3),
}


@pytest.mark.parametrize("name", _JOINED)
def test_joined(name: str) -> None:
    function, count = _JOINED[name]
    graph = fused(Net(function), torch.randn(2, 4, 4, 6))
    (cat,) = graph.find_nodes(op="call_function", target=torch.ops.aten.cat.default)
    assert len(cat.args[0]) == count


def test_generated_code(tmp_path: Path) -> None:
    harness.freeze(tmp_path, *models.concatenated())
    manifest = harness.generate(tmp_path, "concatenated")
    text = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert len(re.findall(r"aoti_convolution::RunInto\(", text)) == 4
    assert len(re.findall(r"aoti_convolution::RunChainInto<3>\(", text)) == 1
    (shim,) = [s for s in manifest.codegen.shims if s.name == "aoti_torch_cpu_convolution"]
    assert len(shim.nodes) == 8
