"""The language model's files in stock PyTorch: the same logits, and the same cache afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from models.smollm2 import model as smollm2
from tests.artifacts.artifacts import runfile

# (new tokens, tokens in the cache afterwards): a prompt, tokens after it, and another prompt.
CALLS = [(7, 7), (1, 8), (1, 9), (300, 300), (1, 301)]


def assert_close(actual: Any, expected: Any) -> None:
    """Logits are about 20."""
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=5e-3)


def _package() -> Callable[..., Any]:
    return torch._inductor.aoti_load_package(str(runfile("models/llm_aoti.pt2")))


def _program() -> Callable[..., Any]:
    return torch.export.load(runfile("models/llm_aoti.export.pt2")).module()


@pytest.mark.parametrize("load", [_package, _program])
def test_equals_eager(load: Callable[[], Callable[..., Any]]) -> None:
    """Each call reads what the ones before it wrote to the cache."""
    with torch.no_grad():
        eager, run = smollm2.build(str(runfile(os.environ["SMOLLM2_WEIGHTS"]))), load()
        for seq, total in CALLS:
            inputs = smollm2.sample_inputs(seq, total)
            expected, actual = eager(*inputs), run(*inputs)
            assert_close(actual, expected)
            assert actual.argmax() == expected.argmax()
        if isinstance(run, torch.nn.Module):
            cache = run.get_buffer("past_key_values")
            assert_close(cache, eager.past_key_values)
            assert cache[:, :, :301].any(-1).all(), "rows of the cache are empty"
