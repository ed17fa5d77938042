"""Where images are rounded to bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from aoti_driver.export import roundings
from aoti_driver.program.graph_nodes import is_cast
from torch import Tensor, nn
from torch.nn import functional


def narrow(x: Tensor) -> Tensor:
    """As ``precision = "bfloat16"`` rounds what a convolution reads."""
    rounded: Tensor = torch.ops.aten._to_copy.default(x, dtype=torch.bfloat16)
    return rounded


def widened(x: Tensor) -> Tensor:
    wide: Tensor = torch.ops.aten._to_copy.default(x, dtype=torch.float32)
    return wide


class Net(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def order(function: Callable[..., Any], tolerance: float = 0.0) -> list[str]:
    """The program's roundings, pools, and so on, in their order. tolerance: of its results, which
    otherwise stay the same.
    """
    x = torch.randn(2, 3, 8, 12, generator=torch.Generator().manual_seed(0))
    x[0, 1, 2, 3] = torch.nan
    with torch.no_grad():
        program = torch.export.export(Net(function), (x.clone(),))
        expected = program.module(check_guards=False)(x.clone())
        roundings.move_up(program)
        program.graph.lint()
        program.graph_module.recompile()
        actual = program.module(check_guards=False)(x.clone())
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    dtype = {torch.float32: "", torch.bfloat16: " narrow"}
    return [
        "round" if is_cast(node, torch.bfloat16) else _name(node) + dtype[_dtype(node)]
        for node in program.graph.nodes
        if node.op == "call_function" and isinstance(node.meta.get("val"), Tensor)
    ]


def _name(node: Any) -> str:
    return str(node.target).removeprefix("aten.").partition(".")[0]


def _dtype(node: Any) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def _unet(x: Tensor) -> Any:
    y = x.relu()
    down = narrow(functional.max_pool2d(y, 2))
    up = functional.interpolate(widened(down), scale_factor=2.0)
    return down, narrow(torch.cat([y, up], 1))


def _written(x: Tensor) -> Any:
    y = x * 2
    before = narrow(y)
    y[:, 1:].add_(1)
    return before, narrow(y)


def _viewed(x: Tensor) -> Any:
    y = x * 2
    part = y[:, 1:]
    before = narrow(part)
    y.add_(1)
    return before, narrow(part)


def _in_place(x: Tensor) -> Any:
    y = (x * 2).relu_()
    return narrow(y), narrow(y) + 1


_PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "a pool": (
        lambda x: narrow(functional.max_pool2d(x.relu(), 2)),
        ["relu", "round", "max_pool2d narrow"],
    ),
    "a concatenation": (
        lambda x: narrow(torch.cat([x.relu(), x.sin()], 1)),
        ["relu", "sin", "round", "round", "cat narrow"],
    ),
    "what is enlarged": (
        lambda x: narrow(functional.interpolate(x.relu(), scale_factor=2.0)),
        ["relu", "round", "upsample_nearest2d narrow"],
    ),
    "twice": (
        lambda x: narrow(torch.cat([x.relu()] * 2, 1)),
        ["relu", "round", "cat narrow"],
    ),
    "several operators": (
        _unet,
        [
            *("relu", "round", "max_pool2d narrow", "_to_copy"),
            *("upsample_nearest2d narrow", "cat narrow"),
        ],
    ),
    "one that float32 is read of": (
        lambda x: (narrow(functional.max_pool2d(y := x.relu(), 2)), y + 1),
        ["relu", "max_pool2d", "round", "add"],
    ),
    "a pool that float32 is read of": (
        lambda x: (narrow(y := functional.max_pool2d(x.relu(), 2)), y),
        ["relu", "max_pool2d", "round"],
    ),
    "an average": (
        lambda x: narrow(functional.avg_pool2d(x.relu(), 2)),
        ["relu", "avg_pool2d", "round"],
    ),
    "written to between two": (_written, ["mul", "round", "slice", "add_", "round"]),
    "a part that is written to": (_viewed, ["mul", "slice", "round", "add_", "round"]),
    "computed in place": (_in_place, ["mul", "relu_", "round", "add narrow"]),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_order(name: str) -> None:
    function, expected = _PROGRAMS[name]
    assert order(function) == expected


def _convolution(image: Tensor) -> Tensor:
    """In float32, of a rounded image."""
    weight = torch.ones(3, 3, 1, 1, dtype=torch.bfloat16)
    return widened(functional.conv2d(narrow(image), weight))


def _block(x: Tensor) -> Tensor:
    x = x.relu()
    y = _convolution(x).relu_()
    y += x
    return y


def _sum_of_others(x: Tensor) -> Tensor:
    y = x.relu()
    return _convolution(y) + (x.sin() + y)


def _read_as_float32(x: Tensor) -> Any:
    x = x.relu()
    return _convolution(x) + x, x.mean()


_SUMS: dict[str, tuple[Callable[..., Any], bool]] = {
    "a block": (_block, True),
    "two blocks": (lambda x: _block(_block(x)), True),
    "a sum of others": (_sum_of_others, False),
    "an image that is also read as float32": (_read_as_float32, False),
    "a sum before the rounding": (
        lambda x: (_convolution(x.sin()) + (y := x.relu()), _convolution(y)),
        False,
    ),
    "an image alone": (lambda x: _convolution(x) + x.relu(), False),
}


@pytest.mark.parametrize("name", _SUMS)
def test_residuals(name: str) -> None:
    """An image that only convolutions and sums with their results read is read as bfloat16."""
    function, rounded = _SUMS[name]
    nodes = order(function, 0.02 if rounded else 0.0)
    assert ("round _to_copy conv2d" in " ".join(nodes)) == rounded
