"""For which calls of `grid_sample` there is a loop over channels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from aoti_driver.inductor import grid_samples
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional


def count(x: Tensor, grid: Tensor, *, dynamic: bool = False, **options: Any) -> int:
    """How often the operator stands in a graph, which has the same results with it."""
    options = {"align_corners": False, **options}

    class Module(nn.Module):
        def forward(self, x: Tensor, grid: Tensor) -> Tensor:
            return functional.grid_sample(x, grid, **options)

    sizes = {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO}
    shapes = (sizes, {0: Dim.AUTO, 1: Dim.AUTO}) if dynamic else None
    module: Any = torch.export.export(Module(), (x, grid), dynamic_shapes=shapes).module()
    grid_samples.replace(module)
    torch.testing.assert_close(module(x, grid), functional.grid_sample(x, grid, **options))
    return len(module.graph.find_nodes(op="call_function", target=grid_samples.SAMPLE))


IMAGE, POINTS = torch.randn(2, 16, 5, 6), torch.randn(2, 3, 4, 2)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("align", [False, True])
def test_replaced(dynamic: bool, padding: str, align: bool) -> None:
    options = {"padding_mode": padding, "align_corners": align}
    assert count(IMAGE, POINTS, dynamic=dynamic, **options) == 1


# Image, points, options.
KEPT: dict[str, tuple[Tensor, Tensor, dict[str, Any]]] = {
    "few channels": (IMAGE[:, :15], POINTS, {}),
    "nearest": (IMAGE, POINTS, {"mode": "nearest"}),
    "reflection": (IMAGE, POINTS, {"padding_mode": "reflection"}),
    "float64": (IMAGE.double(), POINTS.double(), {}),
    "volumes": (torch.randn(2, 16, 3, 4, 5), torch.randn(2, 2, 2, 2, 3), {}),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    x, grid, options = KEPT[name]
    assert count(x, grid, **options) == 0
