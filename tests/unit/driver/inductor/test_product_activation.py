"""Which linear layers take their activation along, and what the generated code calls for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.inductor import product_activation
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from tests.unit.driver.inductor import harness


class Net(nn.Module):
    """Linear layers of 6 to 10 to 6 numbers, and a function of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.up = nn.Linear(6, 10)
        self.down = nn.Linear(10, 6)
        self.bare = nn.Linear(6, 10, bias=False)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def fused(net: nn.Module, x: Tensor, tolerance: float = 1e-5) -> list[bool]:
    """Of each operator in the graph, which computes the same as the net, whether it has gelu."""
    with torch.no_grad():
        program = torch.export.export(net, (x.clone(),), dynamic_shapes=({0: Dim.AUTO},))
        module: Any = program.module(check_guards=False)
        product_activation.fuse(module)
        torch.testing.assert_close(module(x.clone()), net(x), rtol=tolerance, atol=tolerance)
    operator = product_activation.OPERATOR
    return [node.args[3] for node in module.graph.find_nodes(op="call_function", target=operator)]


def rows(*sizes: int) -> Tensor:
    return torch.randn(*(sizes or (3, 6)), generator=torch.Generator().manual_seed(1))


_FUSED: dict[str, tuple[Callable[..., Any], list[bool]]] = {
    "gelu": (lambda net, x: functional.gelu(net.up(x)), [True]),
    "relu": (lambda net, x: torch.relu(net.up(x)), [False]),
    "relu_": (lambda net, x: torch.relu_(net.up(x)), [False]),
    "two": (lambda net, x: torch.relu(net.down(functional.gelu(net.up(x)))), [True, False]),
}


@pytest.mark.parametrize("name", _FUSED)
@pytest.mark.parametrize("sizes", [(3, 6), (3, 5, 6), (3, 2, 4, 6)])
def test_fused(name: str, sizes: tuple[int, ...]) -> None:
    function, expected = _FUSED[name]
    assert fused(Net(function), rows(*sizes)) == expected


# What is computed as it is.
_REFUSED: dict[str, Callable[..., Any]] = {
    "alone": lambda net, x: net.up(x),
    "two readers": lambda net, x: (lambda y: functional.gelu(y) * y)(net.up(x)),
    "tanh": lambda net, x: functional.gelu(net.up(x), approximate="tanh"),
    "another activation": lambda net, x: functional.silu(net.up(x)),
    "no bias": lambda net, x: functional.gelu(net.bare(x)),
    "one row": lambda net, x: functional.gelu(net.up(x[0])),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_refused(name: str) -> None:
    assert fused(Net(_REFUSED[name]), rows()) == []


def _narrow(net: Net, x: Tensor, *, read_twice: bool = False) -> Any:
    """As precision = "bfloat16" has it: the layer's result is widened, and narrowed again."""
    copy = torch.ops.aten._to_copy
    y = functional.gelu(copy(net.up(x), dtype=torch.float32))
    result = net.down(copy(y, dtype=x.dtype))
    return (result, y) if read_twice else result


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits(dtype: torch.dtype) -> None:
    both: list[Callable[..., Any]] = [_narrow, lambda net, x: net.down(torch.relu(net.up(x)))]
    for function, expected in zip(both, ([True], [False]), strict=True):
        assert fused(Net(function).to(dtype), rows(3, 5, 6).to(dtype), 0.02) == expected
    twice = Net(functools.partial(_narrow, read_twice=True)).to(dtype)
    assert fused(twice, rows().to(dtype), 0.02) == []


def test_other_dtypes() -> None:
    net = Net(lambda net, x: functional.gelu(net.up(x)))
    assert fused(net.double(), rows().double()) == []


def test_generated_code(tmp_path: Path) -> None:
    net = Net(lambda net, x: net.down(functional.gelu(net.up(x))))
    harness.freeze(tmp_path, net, (rows(3, 5, 6),), {}, ({0: Dim("n", max=9)},))
    manifest = harness.generate(tmp_path, "net")
    assert "_addmm_activation(" in (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert "erf" not in harness.kernels(tmp_path)
    # The function that a runtime must have for it, and the layout of its weight.
    (shim,) = [s for s in manifest.codegen.shims if "activation" in s.name]
    assert shim.dtypes == ("float32->float32",)
    assert {p.source: p.kind for p in manifest.codegen.packed} == {
        "up.weight": "gemm_f32",
        "down.weight": "gemm_f32",
    }


def test_nodes_without_readers_stay() -> None:
    """Such as the marks around blocks that repeat."""
    with torch.no_grad():
        module: Any = torch.export.export(Net(_FUSED["gelu"][0]), (rows(),)).module()
        output = module.graph.output_node()
        with module.graph.inserting_before(output):
            module.graph.call_function(torch.ops.aten.neg.default, (output.args[0][0],))
        product_activation.fuse(module)
    assert len(module.graph.find_nodes(op="call_function", target=torch.ops.aten.neg.default)) == 1
