"""Which enlargements of images have loops of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from aoti_driver.inductor import enlargement
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional


def resized(x: Tensor, align: bool = False, **sizes: Any) -> Tensor:
    return functional.interpolate(x, mode="bilinear", align_corners=align, **sizes)


def operators(function: Callable[[Tensor], Any], *sizes: int, dynamic: bool = False) -> list[str]:
    """Those that the graph of the function has in place of PyTorch's."""

    class Module(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return function(x)

    x = torch.randn(*sizes)
    shapes = ({2: Dim.AUTO, 3: Dim.AUTO},) if dynamic else None
    module: Any = torch.export.export(Module(), (x,), dynamic_shapes=shapes).module()
    enlargement.replace(module)
    torch.testing.assert_close(module(x), function(x))
    return [
        node.name
        for operator in (enlargement.ENLARGE, enlargement.SHUFFLE)
        for node in module.graph.find_nodes(op="call_function", target=operator)
    ]


@pytest.mark.parametrize("dynamic", [False, True])
def test_replaced(dynamic: bool) -> None:
    for function in (
        lambda x: resized(x, scale_factor=2.0),
        lambda x: resized(x, True, scale_factor=1.0),
        lambda x: resized(x, size=(2 * x.shape[2], 3 * x.shape[3])),
        lambda x: functional.pixel_shuffle(x, 2),
    ):
        assert len(operators(function, 2, 4, 5, 6, dynamic=dynamic)) == 1


# What stays as it is.
_KEPT: dict[str, Callable[[Tensor], Any]] = {
    "smaller": lambda x: resized(x, scale_factor=0.5),
    "smaller in one dim": lambda x: resized(x, size=(10, 5)),
    "float64": lambda x: resized(x.double(), scale_factor=2.0),
    "another mode": lambda x: functional.interpolate(x, scale_factor=2.0, mode="bicubic"),
    "five dims": lambda x: functional.pixel_shuffle(x[None], 2),
    "no factor": lambda x: functional.pixel_shuffle(x, 1),
}


@pytest.mark.parametrize("name", _KEPT)
def test_kept(name: str) -> None:
    assert operators(_KEPT[name], 2, 4, 5, 6) == []


def test_sizes_that_may_become_smaller_are_kept() -> None:
    assert operators(lambda x: resized(x, size=(9, 9)), 2, 4, 5, 6, dynamic=True) == []
