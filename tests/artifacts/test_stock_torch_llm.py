"""The language model's files in stock PyTorch: the same logits, and the same cache afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from models.smollm2 import model as smollm2
from tests.artifacts.artifacts import runfile

# (new tokens, tokens in the cache afterwards): a prompt from nothing, and a token after it.
CALLS = [(7, 7), (1, 8), (1, 300)]


def assert_close(actual: Any, expected: Any) -> None:
    """Random numbers in the cache make attention sharp, so that rounding shows.

    Logits are about 20.
    """
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=5e-3)


@pytest.fixture(scope="module")
def eager() -> Iterator[torch.nn.Module]:
    with torch.no_grad():
        yield smollm2.build(str(runfile(os.environ["SMOLLM2_WEIGHTS"]))).eval()


def _package() -> Callable[..., Any]:
    return torch._inductor.aoti_load_package(str(runfile("models/llm_aoti.pt2")))


def _program() -> Callable[..., Any]:
    return torch.export.load(runfile("models/llm_aoti.export.pt2")).module()


@pytest.mark.parametrize("load", [_package, _program])
def test_equals_eager(eager: torch.nn.Module, load: Callable[[], Callable[..., Any]]) -> None:
    run = load()
    for seq, total in CALLS:
        wanted, given = (smollm2.sample_inputs(seq, total) for _ in range(2))
        expected, actual = eager(*wanted), run(*given)
        assert_close(actual, expected)
        assert actual.argmax() == expected.argmax()
        assert_close(given[3], wanted[3])
        assert given[3][:, :, total - seq : total].any(), "the new rows of the cache are empty"
