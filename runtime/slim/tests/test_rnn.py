"""mkldnn_rnn_layer, one direction of an LSTM layer, against torch.nn.LSTM."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from harness import OpError, assert_equal, load
from torch import Tensor, nn

slim = load()
NAME = "aoti_torch_cpu_mkldnn_rnn_layer"
LEVELS = {"AVX512": [0, 1, 2], "AVX2": [0, 1], "DEFAULT": [0]}.get(
    torch.backends.cpu.get_cpu_capability(), [3]
)


@pytest.fixture(params=LEVELS, autouse=True)
def level(request: pytest.FixtureRequest) -> Iterator[None]:
    slim.library.aoti_slim_set_cpu_level(request.param)
    yield
    slim.library.aoti_slim_set_cpu_level(LEVELS[-1])


def layer(
    x: Tensor, weights: list[Tensor], h: Tensor, c: Tensor, reverse: bool = False, **changed: Any
) -> tuple[Tensor, ...]:
    size = weights[1].shape[1]
    has_biases = len(weights) == 4
    own = weights if has_biases else [*weights, weights[0][:0], weights[0][:0]]
    values = {"batch_sizes": [], "mode": 2, **changed}
    return slim.call(
        NAME, x, *own, h, c, reverse, values["batch_sizes"], values["mode"], size, 1, has_biases,
        False, False, False,
    )  # fmt: skip


@pytest.mark.parametrize(("steps", "batch", "features", "size"), [
    (1, 1, 1, 1), (5, 2, 8, 16), (7, 3, 5, 13), (20, 17, 33, 64), (0, 2, 3, 4), (3, 0, 3, 4),
])  # fmt: skip
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_like_pytorch(
    steps: int, batch: int, features: int, size: int, bias: bool, reverse: bool
) -> None:
    torch.manual_seed(steps)
    module = nn.LSTM(features, size, bias=bias).double()
    x = torch.randn(steps, batch, features, dtype=torch.float64)
    h, c = (torch.randn(1, batch, size, dtype=torch.float64) for _ in range(2))
    if steps and batch:
        with torch.no_grad():
            output, (h_n, c_n) = module(x.flip(0) if reverse else x, (h, c))
        output = output.flip(0) if reverse else output
    else:
        output, h_n, c_n = torch.zeros(steps, batch, size), h, c
    for dtype, tolerance in ((torch.float32, 3e-6), (torch.bfloat16, 3e-2), (torch.float16, 4e-3)):
        weights = [p.detach().to(dtype) for p in module.parameters()]
        inputs = [t.to(dtype) for t in (x, h, c)]
        actual = layer(inputs[0], weights, inputs[1], inputs[2], reverse)
        for own, theirs in zip(actual, (output, h_n, c_n), strict=False):
            assert_equal(own, theirs.to(dtype), rtol=tolerance, atol=tolerance, strides=True)
        flat = layer(inputs[0], weights, inputs[1][0], inputs[2][0], reverse)
        assert_equal(flat[1], actual[1][0], rtol=0, atol=0)
        assert actual[3].shape == (0,) and actual[3].dtype == torch.uint8


def test_strides() -> None:
    x = torch.randn(4, 9, 6).transpose(0, 2)
    weights = [torch.randn(5, 12).t(), torch.randn(12, 6)[:, ::2], torch.randn(12), torch.randn(12)]
    weights[0] = torch.randn(4, 12).t()
    h, c = (torch.randn(1, 3, 9).transpose(1, 2) for _ in range(2))
    expected = layer(
        x.contiguous(), [w.contiguous() for w in weights], h.contiguous(), c.contiguous()
    )
    for own, theirs in zip(layer(x, weights, h, c), expected, strict=True):
        assert_equal(own, theirs, strides=True)


def test_large_and_special_values() -> None:
    weights = [torch.full((4, 1), 50.0), torch.zeros(4, 1)]
    x = torch.tensor([-100.0, 1e-4, 100.0, math.inf, math.nan]).view(1, 5, 1)
    state = torch.full((1, 5, 1), 0.5)
    expected = torch.ops.aten.lstm_cell(x[0], [state[0], state[0]], *weights)
    actual = layer(x, weights, state, state)
    assert_equal(actual[0][0], expected[0])
    assert_equal(actual[2][0], expected[1])


X, W, H = torch.ones(3, 2, 4), [torch.ones(20, 4), torch.ones(20, 5)], torch.ones(1, 2, 5)


@pytest.mark.parametrize(
    ("arguments", "changed", "message"),
    [
        ((X[0], W, H, H), {}, "the input has 2 dims"),
        ((X, [torch.ones(20, 3), W[1]], H, H), {}, r"weight is \[20, 3\], must be \[20, 4\]"),
        ((X, [W[0], torch.ones(19, 5)], H, H), {}, r"weight is \[19, 5\], must be \[20, 5\]"),
        ((X, W, torch.ones(1, 3, 5), H), {}, r"hidden state is \[1, 3, 5\]"),
        ((X, W, H, torch.ones(5)), {}, r"cell state is \[5\]"),
        ((X, [*W, torch.ones(20), torch.ones(3)], H, H), {}, r"bias is \[3\], must be \[20\]"),
        ((X.double(), W, H, H), {}, "input is float64"),
        ((X, W, H, H), {"mode": 3}, "mode is 3"),
        ((X, W, H, H), {"batch_sizes": [2, 1]}, "packed sequences"),
    ],
)
def test_errors(arguments: tuple[Any, ...], changed: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        layer(*arguments, **changed)
