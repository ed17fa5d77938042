"""The backward pass of a program that calls operators of its own."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.process import cli
from aoti_driver.program import operators
from torch import Tensor

from tests.unit.driver.harness import Export

SOURCE = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.ops.own_gradients.{name}(x.sin(), 3.0) + 1

    def build():
        return Net()
"""


@functools.cache
def register() -> None:
    """As libraries of `torch_custom_ops` targets do; one of the two operators has a formula."""
    registered: Any = torch.library
    for name in ("with_formula", "without"):
        full = f"own_gradients::{name}"
        operators.declare([f"{full}(Tensor x, float by) -> Tensor"])
        registered.impl(full, "CPU", lambda x, by: x * by)
        registered.register_fake(full, lambda x, by: torch.empty_like(x))

    def setup(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.by = inputs[1]

    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return torch.ops.own_gradients.without(gradient, ctx.by), None

    registered.register_autograd("own_gradients::with_formula", backward, setup_context=setup)


def differentiate(export: Export, folder: Path, name: str) -> int:
    register()
    forward = export(SOURCE.format(name=name), {"x": "float64[n, 4]"}, {"n": "1..9"})
    assert forward.code == 0
    files = [f"{part}{f}" for part in ("", "training_") for f in ("graph", "weights", "manifest")]
    files += ["locations", "training_locations"]
    spec = {"label": "//m:op", "labels": ["//m:a", "//m:b"], "names": ["a", "b"]}
    return cli.main(
        [
            "differentiate",
            f"--spec={json.dumps(spec)}",
            f"--graph={forward.graph}",
            f"--weights={forward.weights}",
            f"--manifest={forward.manifest_path}",
            *[f"--out_{file}={folder / file}" for file in files],
        ]
    )


def test_a_formula(export: Export, tmp_path: Path) -> None:
    assert differentiate(export, tmp_path, "with_formula") == 0
    assert "own_gradients.with_formula" in (tmp_path / "training_graph").read_text("utf-8")
    # The formula calls an operator, too.
    assert "own_gradients.without" in (tmp_path / "graph").read_text("utf-8")


def test_no_formula(export: Export, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert differentiate(export, tmp_path, "without") == 1
    error = capsys.readouterr().err
    assert error.startswith("//m:op: differentiable = True, but //")
    assert (
        "calls own_gradients::without, which has no gradient formula. Call "
        'torch.library.register_autograd("own_gradients::without", ...) in a file of its target\'s '
        "`python`."
    ) in error
