"""What is spared in an export changes no program, and is there for who asks for it."""

from __future__ import annotations

import copy
import operator
import re

import pytest
import torch
from aoti_driver.export.spared_work import spared
from torch import nn
from torch.fx import Graph, GraphModule


def doubled() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, x)))
    return GraphModule(nn.Module(), graph)


def has_code(module: GraphModule) -> bool:
    return "_code" in vars(module)


def test_code_is_made_when_it_is_asked_for() -> None:
    with spared():
        module, other = doubled(), doubled()
        assert not has_code(module)
        assert module(2) == 4
        assert has_code(module)
    assert not has_code(other)
    assert "x + x" in other.code
    assert other.forward(3) == 6


def test_code_is_made_anew_after_a_change() -> None:
    with spared():
        module = doubled()
        assert module(2) == 4
        for node in module.graph.nodes:
            if node.op == "call_function":
                node.target = operator.mul
        assert module(2) == 4  # as without recompile()
        module.recompile()
        assert module(3) == 9


def test_modules_within_a_module_get_new_code_with_it() -> None:
    with spared():
        inner = doubled()
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_module("inner", (x,)))
        outer = GraphModule(nn.ModuleDict({"inner": inner}), graph)
        assert outer(3) == 6
        for node in inner.graph.nodes:
            if node.op == "call_function":
                node.target = operator.mul
        outer.recompile()
        assert outer(3) == 9


def test_a_copy() -> None:
    with spared():
        module = doubled()
        copied = copy.deepcopy(module)
        assert not has_code(module)
    assert copied(2) == 4
    assert module(2) == 4


def numbered(text: str) -> str:
    """torch counts the modules that get code, and gives their files the number."""
    return re.sub(r"<eval_with_key>\.\d+", "<eval_with_key>.0", text)


class _Model(nn.Module):
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        for layer in self.layers:
            x = layer(x).relu() * scale
        result: torch.Tensor = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
        return result


@pytest.mark.parametrize("strict", [False, True])
def test_the_program_is_the_same(strict: bool) -> None:
    def export() -> torch.export.ExportedProgram:
        torch.manual_seed(0)
        rows = {0: torch.export.Dim("rows", min=2, max=9)}
        return torch.export.export(
            _Model(),
            (torch.ones(3, 8),),
            {"scale": torch.ones(8)},
            dynamic_shapes={"x": rows, "scale": None},
            strict=strict,
        )

    plain = export()
    with spared():
        program = export()
    assert numbered(str(program)) == numbered(str(plain))
    traces = [
        [numbered(node.meta.get("stack_trace", "")) for node in each.graph.nodes]
        for each in (plain, program)
    ]
    assert traces[0] == traces[1]
    assert any("layer(x)" in trace for trace in traces[1])
    x, scale = torch.randn(5, 8), torch.randn(8)
    assert torch.equal(program.module()(x, scale=scale), plain.module()(x, scale=scale))
