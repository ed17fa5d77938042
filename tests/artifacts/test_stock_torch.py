"""Stock PyTorch loads what was built, and computes what eager PyTorch does."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from models.glassllm import model as glassllm
from tests.artifacts import mixing
from tests.artifacts.artifacts import artifact, runfile

Inputs = dict[str, torch.Tensor]


def _glass() -> torch.nn.Module:
    module: torch.nn.Module = glassllm.build(str(runfile(os.environ["GLASSLLM_WEIGHTS"])))
    return module


def _glass_inputs(size: int) -> Inputs:
    generator = torch.Generator().manual_seed(size)
    return {"input_ids": torch.randint(0, 1024, (1, size), generator=generator)}


def _mixer_inputs(size: int) -> Inputs:
    generator = torch.Generator().manual_seed(size)
    return {
        "x": torch.randn(size, 8, generator=generator),
        "pairs": torch.randn(2 * size, 8, generator=generator),
    }


@dataclass(frozen=True)
class Case:
    """A model: eager PyTorch's, inputs for a size of its dynamic dim, and sizes to try."""

    eager: Callable[[], torch.nn.Module]
    inputs: Callable[[int], Inputs]
    sizes: tuple[int, ...]


CASES = {
    "glass_aoti": Case(_glass, _glass_inputs, (1, 2, 37, 128)),
    "mixer": Case(mixing.build, _mixer_inputs, (1, 5, 16)),
}


def check(name: str, run: Callable[..., Any]) -> None:
    """Stock PyTorch takes arguments as they were exported: by position, as forward() has them."""
    case = CASES[name]
    eager = case.eager().eval()
    for size in case.sizes:
        inputs = case.inputs(size)
        with torch.no_grad():
            expected, actual = eager(**inputs), run(*inputs.values())
        if isinstance(expected, Mapping):
            assert list(actual) == list(expected)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_package(name: str) -> None:
    package = torch._inductor.aoti_load_package(str(artifact(name, ".pt2")))
    check(name, package)


@pytest.mark.parametrize("name", CASES)
def test_exported_program(name: str) -> None:
    program = torch.export.load(artifact(name, ".export.pt2"))
    check(name, program.module())


@pytest.mark.parametrize("name", CASES)
def test_exported_program_keeps_the_declared_ranges(name: str) -> None:
    program = torch.export.load(artifact(name, ".export.pt2"))
    upper = {int(bounds.upper) for bounds in program.range_constraints.values()}
    assert CASES[name].sizes[-1] in upper
