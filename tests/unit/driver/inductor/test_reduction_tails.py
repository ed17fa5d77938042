"""Reductions whose loops are tiled, with another loop between: the end of the outer one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

BETWEEN = 5
# Sizes of the outer loop and of the reduction, some no multiples of a vector's.
SIZES = ((19, 19), (20, 24), (24, 19), (21, 21))


class Reduce(nn.Module):
    """The outer loop runs along the result, the reduction along the first argument."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        x, other = x.permute(1, 0, 2), other.permute(1, 0, 2)[..., ::2]
        if self.kind == "sum":
            return (x + other).sum(-1)
        if self.kind == "softmax":
            return (x + other).softmax(-1)
        if self.kind == "largest":
            return (x + other).amax(-1)
        # Many selections: what is left is computed for one element at a time.
        return torch.where(x > 0, x + other, 1.0).where(other > 0, 2.0).amax(-1)


def test_results(tmp_path: Path) -> None:
    torch.manual_seed(0)
    models: dict[str, tuple[nn.Module, tuple[Any, ...], Any]] = {}
    for kind in ("sum", "softmax", "largest", "chosen"):
        for outer, inner in SIZES:
            inputs = torch.randn(outer, BETWEEN, inner), torch.randn(outer, BETWEEN, 2 * inner)
            models[f"{kind}_{outer}_{inner}"] = (Reduce(kind), inputs, None)
    library = harness.build_programs(tmp_path, models, harness.ISA)
    for name, (module, inputs, _) in models.items():
        # A tile lies the other way round in one of the tensors: two loops are tiled.
        assert "transpose_mxn" in harness.kernels(tmp_path / name)
        (actual,) = harness.Compiled(library, name, tmp_path / name)(*inputs)
        assert torch.allclose(actual, module(*inputs), rtol=1e-4, atol=1e-5), name
