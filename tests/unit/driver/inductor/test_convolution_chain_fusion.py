"""Which convolutions are one chain, which are not, and that the program computes the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.export import precision
from aoti_driver.inductor import convolution_chain_fusion, convolution_fusion
from aoti_driver.inductor.convolution_chain import OPERATOR
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from tests.unit.driver.inductor import harness, models


class Net(nn.Module):
    """An inverted residual block of 8 channels, which are 24 inside, and a function of it."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.up = nn.Conv2d(8, 24, 1)
        self.filter = nn.Conv2d(24, 24, 3, **({"padding": 1, "groups": 24} | options))
        self.norm = nn.BatchNorm2d(24)
        nn.init.normal_(self.norm.running_mean)  # type: ignore[arg-type]
        self.down = nn.Conv2d(24, 8, 1, bias=False)

    def expand(self, x: Tensor) -> Tensor:
        return torch.relu(self.up(x))

    def filtered(self, x: Tensor) -> Tensor:
        return functional.relu6(self.norm(self.filter(x)))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def chains(net: nn.Module, x: Tensor) -> list[tuple[Any, ...]]:
    """The arguments of the operators in the graph, which computes the same as the net."""
    net.eval()
    with torch.no_grad():
        program = torch.export.export(net, (x.clone(),), dynamic_shapes=({0: Dim.AUTO},))
        module: Any = program.module(check_guards=False)
        convolution_fusion.fuse(module)
        convolution_chain_fusion.fuse(module)
        torch.testing.assert_close(module(x.clone()), net(x.clone()), rtol=1e-5, atol=1e-5)
    return [node.args for node in module.graph.find_nodes(op="call_function", target=OPERATOR)]


def test_chain_of_bfloat16() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(16, 32, 1), nn.ReLU()),
        *(nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.ReLU()),
        *(nn.Conv2d(32, 16, 1), nn.ReLU()),
        *(nn.Conv2d(16, 16, 1), nn.ReLU()),
    )
    x = torch.randn(2, 16, 9, 10)
    with torch.no_grad():
        program = torch.export.export(net, (x,))
        precision.lower(program, precision.BFLOAT16)
        module: Any = program.module(check_guards=False)
        convolution_fusion.fuse(module)
        expected = module(x)
        convolution_chain_fusion.fuse(module)
        assert torch.equal(module(x), expected)
    (chain,) = module.graph.find_nodes(op="call_function", target=OPERATOR)
    image, weights, *_, narrow = chain.args
    assert image.meta["val"].dtype == torch.bfloat16
    dtypes = [weight.meta["val"].dtype for weight in weights]
    assert dtypes == [torch.bfloat16, torch.float32, torch.bfloat16]
    assert narrow  # for the convolution behind it
    assert chain.meta["val"].dtype == torch.bfloat16


def image() -> Tensor:
    return torch.randn(3, 8, 9, 10, generator=torch.Generator().manual_seed(1))


# How many stages the chain has, and whether it has a residual.
_CHAINS: dict[str, tuple[Callable[..., Any], int, bool]] = {
    "block": (lambda net, x: net.down(net.filtered(net.expand(x))) + x, 3, True),
    "activation": (lambda net, x: torch.relu(net.down(net.filtered(net.expand(x)))), 3, False),
    "plain third": (lambda net, x: net.down(net.filtered(net.expand(x))), 2, False),
    "two": (lambda net, x: net.filtered(net.expand(x)), 2, False),
    "residual of the second": (
        lambda net, x: torch.relu(net.down(net.filter(net.expand(x)) + net.up(x))),
        2,
        True,
    ),
    "second is read twice": (
        lambda net, x: (lambda y: torch.relu(net.down(y)) + y[:, :8])(net.filtered(net.expand(x))),
        2,
        False,
    ),
}


@pytest.mark.parametrize("name", _CHAINS)
def test_chains(name: str) -> None:
    function, count, has_residual = _CHAINS[name]
    (arguments,) = chains(Net(function), image())
    assert len(arguments[1]) == count
    assert (arguments[4] is not None) == has_residual


def test_geometry() -> None:
    net = Net(lambda net, x: net.filtered(functional.pad(net.expand(x), (0, 1, 2, 3))))
    net.filter = nn.Conv2d(24, 24, (3, 2), stride=(2, 1), dilation=(1, 2), groups=24)
    (arguments,) = chains(net, image())
    assert arguments[5:10] == ([2, 1], [2, 0], [3, 1], [1, 2], 24)


def test_chain_of_chains() -> None:
    def twice(net: Net, x: Tensor) -> Tensor:
        y = torch.relu(net.down(net.filtered(net.expand(x))))
        return torch.relu(net.down(net.filtered(net.expand(y))))

    assert [len(arguments[1]) for arguments in chains(Net(twice), image())] == [3, 3]


# What is not a chain.
_OTHERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "first is read twice": (
        lambda net, x: (lambda y: net.filtered(y) + y)(net.expand(x)),
        {},
    ),
    "groups of three": (lambda net, x: net.filtered(net.expand(x)), {"groups": 8}),
    "one group": (lambda net, x: net.filtered(net.expand(x)), {"groups": 1}),
    "bare first": (lambda net, x: net.filtered(net.up(x)), {}),
    "residual of the first": (
        lambda net, x: net.filtered(torch.relu(net.up(x) + x.repeat(1, 3, 1, 1))),
        {},
    ),
    "step of the first": (
        lambda net, x: net.filtered(torch.relu(functional.conv2d(x, net.up.weight, stride=2))),
        {},
    ),
}


@pytest.mark.parametrize("name", _OTHERS)
def test_others(name: str) -> None:
    function, options = _OTHERS[name]
    assert chains(Net(function, **options), image()) == []


def test_written_between() -> None:
    def function(net: Net, x: Tensor) -> Tensor:
        x = x * 1
        y = net.expand(x)
        x.add_(1)
        return net.filtered(y) + x.sum()

    assert chains(Net(function), image()) == []


def test_generated_code(tmp_path: Path) -> None:
    harness.freeze(tmp_path, *models.inverted_residual())
    manifest = harness.generate(tmp_path, "inverted_residual")
    text = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert len(re.findall(r"= aoti_convolution::RunChain<3>\(", text)) == 1
    (shim,) = [s for s in manifest.codegen.shims if s.name == "aoti_torch_cpu_convolution"]
    assert shim.dtypes == ("float32->float32",)
    assert {p.source: (p.kind, p.options) for p in manifest.codegen.packed} == {
        "up.weight": ("conv_f32", {"groups": 1}),
        "filter.weight": ("conv_depthwise_f32", {"groups": 40}),
        "down.weight": ("conv_f32", {"groups": 1}),
    }
