"""Which batch norms have a loop of their own, and attention whose heads are made contiguous."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.inductor import attention_heads, batch_norm, convolution_fusion
from torch import Tensor, nn
from torch.nn import functional

from tests.unit.driver.inductor import harness, models


class Net(nn.Module):
    """Images with 4 channels, two convolutions, a norm for 8 channels, and a function of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.norm = nn.BatchNorm2d(8)
        self.first, self.second = nn.Conv2d(4, 4, 1), nn.Conv2d(8, 3, 1)
        nn.init.normal_(self.norm.running_mean)  # type: ignore[arg-type]
        nn.init.uniform_(self.norm.running_var, 0.5, 2)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def replaced(net: nn.Module) -> list[tuple[int, bool]]:
    """Of each operator in the graph, which computes the same as the net: how many images it
    concatenates, and whether it has a relu.
    """
    x = torch.randn(2, 4, 5, 6)
    with torch.no_grad():
        module: Any = torch.export.export(net.eval(), (x.clone(),)).module()
        convolution_fusion.fuse(module)
        batch_norm.replace(module)
        torch.testing.assert_close(module(x.clone()), net(x), rtol=1e-4, atol=1e-5)
    operator = batch_norm.OPERATOR
    nodes = module.graph.find_nodes(op="call_function", target=operator)
    return [(len(node.args[0]), node.args[3]) for node in nodes]


def joined(net: Any, x: Tensor) -> Tensor:
    return torch.cat([net.first(x), x], 1)


def _read_twice(net: Any, x: Tensor) -> Any:
    both = joined(net, x)
    return net.second(torch.relu(net.norm(both))) + both.sum()


def _norm_read_twice(net: Any, x: Tensor) -> Any:
    y = net.norm(joined(net, x))
    return net.second(torch.relu(y)) + y.sum()


def _written_between(net: Any, x: Tensor) -> Any:
    other = x * 2
    both = torch.cat([net.first(x), other], 1)
    other.add_(1)
    return net.second(torch.relu(net.norm(both))) + other.sum()


_REPLACED: dict[str, tuple[Callable[..., Any], list[tuple[int, bool]]]] = {
    "concatenation": (lambda net, x: net.second(torch.relu(net.norm(joined(net, x)))), [(2, True)]),
    "relu_": (lambda net, x: net.second(torch.relu_(net.norm(joined(net, x)))), [(2, True)]),
    "no relu": (lambda net, x: net.second(net.norm(joined(net, x))), [(2, False)]),
    "no convolution behind it": (lambda net, x: torch.relu(net.norm(joined(net, x))), [(1, False)]),
    "along rows": (
        lambda net, x: net.second(net.norm(torch.cat([x, x], 2).view(2, 8, 5, 6))),
        [(1, False)],
    ),
    "read twice": (_read_twice, [(1, False)]),
    "norm read twice": (_norm_read_twice, [(1, False)]),
    "written between": (_written_between, [(1, False)]),
    "taken by the convolution": (
        lambda net, x: net.norm(torch.cat([x, x], 1))[:, :3],
        [(1, False)],
    ),
}


@pytest.mark.parametrize("name", _REPLACED)
def test_replaced(name: str) -> None:
    function, expected = _REPLACED[name]
    assert replaced(Net(function)) == expected


def test_kept() -> None:
    statistics = Net(lambda net, x: functional.batch_norm(x, None, None, training=True))
    assert replaced(statistics) == []
    wide = Net(lambda net, x: net.norm(torch.cat([x, x], 1).double()))
    wide.norm.double()
    assert replaced(wide) == []


def test_generated_code(tmp_path: Path) -> None:
    harness.freeze(tmp_path, *models.dense())
    harness.generate(tmp_path, "dense")
    kernels = harness.kernels(tmp_path)
    # Roots are computed for the channels, not for the elements of an image, whose loops have the
    # size that varies.
    with_roots = [loop for loop in kernels.split("int aoti_threads") if "sqrt(" in loop]
    assert len(with_roots) == 5
    assert not any("ks0" in loop.partition("int64_t ks0")[0] for loop in with_roots)
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    # What is added to the scores of rows is a product; attention has none.
    assert "flash_attention" in wrapper and wrapper.count("aoti_torch_cpu_bmm_out(") == 1


def test_heads() -> None:
    class Attention(nn.Module):
        def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Any:
            return functional.scaled_dot_product_attention(x, x.transpose(2, 3), y, mask)

    args = torch.randn(1, 2, 4, 4), torch.randn(1, 2, 4, 4).transpose(2, 3), torch.randn(4, 4)
    module: Any = torch.export.export(Attention(), args).module()
    attention_heads.made_contiguous(module)
    copies = module.graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default)
    assert len(copies) == 2
    assert all(copy.meta["val"].stride(-1) == 1 for copy in copies)
    torch.testing.assert_close(module(*args), Attention()(*args))
