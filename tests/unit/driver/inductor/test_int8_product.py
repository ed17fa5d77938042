"""Which products of int8 take scales, bias and activation along, and what the code calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.export import int8_products
from aoti_driver.inductor import int8_product
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.nn import functional

from tests.unit.driver.inductor import harness


class Net(nn.Module):
    """Linear layers of 64 to 80 to 64 numbers, and a function of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.up = nn.Linear(64, 80)
        self.down = nn.Linear(80, 64)
        self.bare = nn.Linear(64, 80, bias=False)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def rows(*sizes: int) -> Tensor:
    return torch.randn(*(sizes or (3, 64)), generator=torch.Generator().manual_seed(1))


def lowered(net: nn.Module, x: Tensor) -> ExportedProgram:
    program = torch.export.export(net, (x.clone(),), dynamic_shapes=({0: Dim("n", max=9)},))
    int8_products.lower(program)
    return program


def fused(net: nn.Module, x: Tensor) -> list[tuple[bool, int]]:
    """Of each operator in the graph, which computes the same as before, whether it has a bias, and
    its activation.
    """
    with torch.no_grad():
        program = lowered(net, x)
        expected = program.module(check_guards=False)(x.clone())
        module: Any = program.module(check_guards=False)
        int8_product.fuse(module)
        torch.testing.assert_close(module(x.clone()), expected, rtol=1e-5, atol=1e-5)
    operator = int8_product.OPERATOR
    return [
        (node.args[4] is not None, node.args[5])
        for node in module.graph.find_nodes(op="call_function", target=operator)
    ]


_FUSED: dict[str, tuple[Callable[..., Any], list[tuple[bool, int]]]] = {
    "alone": (lambda net, x: net.up(x), [(True, 0)]),
    "no bias": (lambda net, x: functional.gelu(net.bare(x)), [(False, 2)]),
    "gelu": (lambda net, x: functional.gelu(net.up(x)), [(True, 2)]),
    "relu": (lambda net, x: torch.relu(net.up(x)), [(True, 1)]),
    "relu_": (lambda net, x: torch.relu_(net.up(x)), [(True, 1)]),
    "two": (
        lambda net, x: torch.relu(net.down(functional.gelu(net.up(x)))),
        [(True, 2), (True, 1)],
    ),
    # Without their activation.
    "two readers": (lambda net, x: (lambda y: functional.gelu(y) * y)(net.up(x)), [(True, 0)]),
    "tanh": (lambda net, x: functional.gelu(net.up(x), approximate="tanh"), [(True, 0)]),
    "silu": (lambda net, x: functional.silu(net.up(x)), [(True, 0)]),
}


@pytest.mark.parametrize("name", _FUSED)
@pytest.mark.parametrize("sizes", [(3, 64), (3, 5, 64)])
def test_fused(name: str, sizes: tuple[int, ...]) -> None:
    function, expected = _FUSED[name]
    assert fused(Net(function), rows(*sizes)) == expected


class Products(nn.Module):
    """`_int_mm` as no linear layer has it."""

    def __init__(self, function: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x, torch._int_mm(x, torch.ones(64, 16, dtype=torch.int8).t().t()))


# What is computed as it is.
_REFUSED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "sums": lambda x, y: y,
    "sums as float": lambda x, y: y.float(),
    "sums as double": lambda x, y: y.double() * torch.ones(3, 1) * torch.ones(16),
    "a number in the place of scales": lambda x, y: y.float() * torch.ones(3, 1) * 2.0,
    "scales for rows": lambda x, y: y.float() * torch.ones(3, 1) * torch.ones(3, 1),
    "two readers": lambda x, y: (y.float() * torch.ones(3, 1) * torch.ones(16), y),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_refused(name: str) -> None:
    x = torch.ones(3, 64, dtype=torch.int8)
    program = torch.export.export(Products(_REFUSED[name]), (x,))
    module: Any = program.module(check_guards=False)
    int8_product.fuse(module)
    assert not module.graph.find_nodes(op="call_function", target=int8_product.OPERATOR)


def test_generated_code(tmp_path: Path) -> None:
    net = Net(lambda net, x: net.down(functional.gelu(net.up(x))))
    shapes = ({0: Dim("n", max=9)},)
    harness.freeze(tmp_path, net, (rows(3, 5, 64),), {}, shapes, int8_products.lower)
    manifest = harness.generate(tmp_path, "net")
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert wrapper.count("= aoti_int8::Product(") == 2
    # In the kernel for libtorch alone.
    assert harness.kernels(tmp_path).count("erf(") == 2
    (shim,) = [s for s in manifest.codegen.shims if "int_mm" in s.name]
    assert shim.dtypes == ("int8->int32",)
