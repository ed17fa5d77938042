"""Sizes that were computed are remembered, and are those that PyTorch computes."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from aoti_driver.program.size_arithmetic import remembered
from torch import nn
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
    operator.lt,
    operator.le,
    torch.sym_max,
    torch.sym_min,
    operator.mod,
    operator.floordiv,
    operator.truediv,
]


def size(env: ShapeEnv, name: str, value: int) -> Any:
    source = ConstantSource(name)
    symbol = env.create_symbol(value, source, DimDynamic.DYNAMIC)
    return env.create_symintnode(symbol, hint=value, source=source)


def node(value: Any) -> Any:
    return value if isinstance(value, SymNode) else value.node


def said(value: Any) -> tuple[str, str, str]:
    """An expression, its type and its hint."""
    of = node(value)
    return str(of.expr), of.pytype.__name__, repr(of.hint)


def both(a: Any, b: Any) -> Any:
    return a.node.and_(b.node)


def either(a: Any, b: Any) -> Any:
    return a.node.or_(b.node)


@pytest.mark.parametrize("op", [*OPERATORS[:11], both, either])
def test_results_are_remembered(op: Callable[[Any, Any], Any]) -> None:
    env = ShapeEnv()
    rows, columns = size(env, "rows", 6), size(env, "columns", 4)
    operands = (rows > 5, columns > 3) if op in (both, either) else (rows + 3, columns)
    plain = op(*operands)
    made = mock.create_autospec(SymNode.__init__, side_effect=SymNode.__init__)
    with remembered(), mock.patch.object(SymNode, "__init__", made):
        first = op(*operands)
        assert made.call_count == 1
        second = op(*operands)
        assert made.call_count == 1
    assert said(first) == said(second) == said(plain)
    assert node(first) is not node(second)


def results() -> list[object]:
    env = ShapeEnv()
    rows, columns, like = size(env, "rows", 6), size(env, "columns", 4), size(env, "like", 6)
    numbers = [rows, columns, like, 2, 2.0, 0.0, -0.0, rows * 0.5, rows + columns, rows + like]
    found: list[object] = []
    for _ in range(2):
        for op, (a, b) in itertools.product(OPERATORS, itertools.product(numbers, repeat=2)):
            if type(a) in (int, float) and type(b) in (int, float):
                continue
            try:
                result = op(a, b)
            except (TypeError, ZeroDivisionError) as e:
                found.append((op.__name__, type(e)))
                continue
            found.append((op.__name__, said(result) if hasattr(result, "node") else result))
    return found


def test_results_are_those_of_pytorch() -> None:
    plain = results()
    assert len({repr(each) for each in plain}) > 200
    with remembered():
        assert results() == plain


def replaced() -> list[str]:
    """What a sum is made of, before and after its terms are known to be equal."""
    env = ShapeEnv()
    rows, columns = size(env, "rows", 6), size(env, "columns", 6)
    before = str((rows + columns).node._expr)
    torch._check(rows == columns)  # type: ignore[no-untyped-call]
    return [before, str((rows + columns).node._expr)]


def test_a_size_that_was_replaced() -> None:
    plain = replaced()
    assert plain[0] != plain[1]
    with remembered():
        assert replaced() == plain


def test_another_environment() -> None:
    with remembered():
        first, second = (size(ShapeEnv(), "rows", 6) + 1 for _ in range(2))
    assert first.node is not second.node
    assert first.node.shape_env is not second.node.shape_env


def test_recorded_sizes() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(x.shape[0] + 1) + x.new_zeros(x.shape[0] + 1)

    def traced() -> str:
        return str(make_fx(function, tracing_mode="symbolic")(torch.ones(4)).graph)

    plain = traced()
    assert plain.count("[target=operator.add]") == 2
    with remembered():
        assert traced() == plain


@pytest.mark.parametrize("strict", [False, True])
def test_the_program_is_the_same(strict: bool) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(3):
                x = torch.cat([x, x[1:]]).relu() * (x.shape[0] + 1)
            return x

    def export() -> torch.export.ExportedProgram:
        rows = {0: torch.export.Dim("rows", min=4, max=64)}
        args = (torch.ones(8, 2),)
        return torch.export.export(Model(), args, dynamic_shapes=(rows,), strict=strict)

    plain = export()
    with remembered():
        program = export()
    assert str(program) == str(plain)
