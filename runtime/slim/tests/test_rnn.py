"""Recurrent layers against torch.nn: whole ones, and mkldnn_rnn_layer, one direction of an LSTM."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterator
from typing import Any

import dispatcher
import pytest
import torch
from aoti_driver.packing import matmul
from harness import OpError, Slim, assert_equal, load
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


def test_an_input_without_features() -> None:
    weights = [torch.empty(20, 0), torch.randn(20, 5), torch.randn(20), torch.randn(20)]
    h, c = (torch.randn(1, 2, 5) for _ in range(2))
    zeros = layer(torch.zeros(9, 2, 1), [torch.zeros(20, 1), *weights[1:]], h, c)
    for own, theirs in zip(layer(torch.empty(9, 2, 0), weights, h, c), zeros, strict=True):
        assert_equal(own, theirs)


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


def whole(
    name: str, x: Tensor, states: list[Tensor], weights: list[Tensor], using: Slim = slim,
    **changed: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """aten::lstm.input and similar operators."""
    options = {"biases": True, "layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    options |= {"batch_first": False} | changed
    given = dispatcher.List(states) if name == "lstm" else states[0]
    return dispatcher.call(
        using, f"aten::{name}.input", x, given, dispatcher.List(weights), *options.values(),
        results=1 + len(states),
    )  # fmt: skip


def module_of(name: str, *sizes: int, **options: Any) -> nn.RNNBase:
    if name.startswith("rnn_"):
        return nn.RNN(*sizes, nonlinearity=name.removeprefix("rnn_"), **options)
    return nn.LSTM(*sizes, **options) if name == "lstm" else nn.GRU(*sizes, **options)


NAMES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
SHAPES = [
    # steps, batch, features, size, layers
    (1, 1, 1, 1, 1), (9, 1, 3, 16, 2), (7, 3, 5, 13, 3), (20, 17, 33, 64, 1),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("steps", "batch", "features", "size", "layers"), SHAPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("projection", [0, 3])
def test_whole_layers_like_pytorch(
    name: str, steps: int, batch: int, features: int, size: int, layers: int, bias: bool,
    bidirectional: bool, projection: int,
) -> None:  # fmt: skip
    if projection and (name != "lstm" or size <= projection):
        pytest.skip("only LSTM has smaller projections")
    torch.manual_seed(steps)
    more = {"proj_size": projection} if projection else {}
    module = module_of(
        name, features, size, num_layers=layers, bias=bias, bidirectional=bidirectional,
        batch_first=bias, **more,
    ).double()  # fmt: skip
    count = layers * (2 if bidirectional else 1)
    x = torch.randn(steps, batch, features, dtype=torch.float64)
    x = x.transpose(0, 1) if bias else x
    states = [torch.randn(count, batch, projection or size, dtype=torch.float64)]
    if name == "lstm":
        states.append(torch.randn(count, batch, size, dtype=torch.float64))
    with torch.no_grad():
        output, last = module(x, tuple(states) if name == "lstm" else states[0])
    expected = [output, *(last if name == "lstm" else [last])]
    for dtype, tolerance in (
        (torch.float64, 1e-12), (torch.float32, 4e-6), (torch.bfloat16, 4e-2), (torch.float16, 5e-3)
    ):  # fmt: skip
        actual = whole(
            name, x.to(dtype), [t.to(dtype) for t in states],
            [p.detach().to(dtype) for p in module.parameters()],
            biases=bias, layers=layers, bidirectional=bidirectional, batch_first=bias,
        )  # fmt: skip
        assert len(actual) == len(expected)
        for own, theirs in zip(actual, expected, strict=True):
            assert_equal(own, theirs.to(dtype), rtol=tolerance, atol=tolerance)


class PackedSlim(Slim):
    """Passes matrices in packed form only: their plain memory has NaN."""

    packed: list[tuple[Tensor, Tensor, Tensor]]  # the weight, what stands for it, and its layout

    def pack(self, weights: list[Tensor]) -> None:
        matrices = [w for w in weights if w.dim() == 2]
        self.packed = [
            (w, torch.full_like(w, math.nan), matmul.pack("gemm_f32", w)) for w in matrices
        ]

    def borrow(self, tensor: Tensor) -> ctypes.c_void_p:
        for weight, stand_in, data in self.packed:
            if tensor is weight:
                handle = super().borrow(stand_in)
                size = ctypes.c_size_t(data.numel())
                address = ctypes.c_void_p(data.data_ptr())
                assert self.library.aoti_slim_set_packed(handle, b"gemm_f32", address, size) == 0
                return handle
        return super().borrow(tensor)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 3, 150])
@pytest.mark.parametrize("projection", [0, 5])
def test_packed_weights(name: str, steps: int, projection: int) -> None:
    if projection and name != "lstm":
        pytest.skip("only LSTM has projections")
    torch.manual_seed(steps)
    more = {"proj_size": projection} if projection else {}
    module = module_of(name, 7, 37, num_layers=2, bidirectional=True, **more)
    weights = [p.detach() for p in module.parameters()]
    states = [torch.randn(4, 3, projection or 37)]
    if name == "lstm":
        states.append(torch.randn(4, 3, 37))
    x = torch.randn(steps, 3, 7)
    options: dict[str, Any] = {"layers": 2, "bidirectional": True}
    expected = whole(name, x, states, weights, **options)
    packing = PackedSlim(os.environ["AOTI_SLIM_LIBRARY"])
    packing.pack(weights)
    actual = whole(name, x, states, weights, using=packing, **options)
    for own, theirs in zip(actual, expected, strict=True):
        # A call packs no weights for few steps, and no projections; they are read in another order.
        tolerance = 0 if steps >= 4 and not projection else 2e-6
        assert_equal(own, theirs, rtol=tolerance, atol=tolerance)
    # A copy of other sizes is not read.
    packing.packed[0] = (*packing.packed[0][:2], packing.packed[0][2][:-64])
    assert whole(name, x, states, weights, using=packing, **options)[0].isnan().any()


@pytest.mark.parametrize("name", NAMES)
def test_many_steps(name: str) -> None:
    """Gates are computed for some steps at a time."""
    torch.manual_seed(1)
    module = module_of(name, 3, 256, bidirectional=True)
    x, state = torch.randn(150, 16, 3), torch.zeros(2, 16, 256)
    with torch.no_grad():
        expected = module(x)[0]
    weights = [p.detach() for p in module.parameters()]
    states = [state, state] if name == "lstm" else [state]
    actual = whole(name, x, states, weights, bidirectional=True)[0]
    assert_equal(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [13, 256, 512])
def test_two_directions_on_several_threads(name: str, size: int) -> None:
    """Each direction on its thread, or all threads for each: where a step is large, and where a
    weight stays in the caches of two threads.
    """
    torch.manual_seed(1)
    module = module_of(name, 5, size, num_layers=2, bidirectional=True)
    x, state = torch.randn(6, 16, 5), torch.randn(4, 16, size)
    with torch.no_grad():
        output, last = module(x, (state, state) if name == "lstm" else state)
    expected = [output, *(last if name == "lstm" else [last])]
    weights = [p.detach() for p in module.parameters()]
    states = [state, state] if name == "lstm" else [state]
    try:
        for threads in (1, 2, 3):
            slim.library.aoti_slim_test_set_threads(threads)
            actual = whole(name, x, states, weights, layers=2, bidirectional=True)
            for own, theirs in zip(actual, expected, strict=True):
                assert_equal(own, theirs, rtol=1e-5, atol=1e-5)
    finally:
        slim.library.aoti_slim_test_set_threads(1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "size"), [(8, 64), (17, 33), (5, 1)])
@pytest.mark.parametrize("projection", [0, 5])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_number_of_threads_does_not_change_results(
    name: str, batch: int, size: int, projection: int, bidirectional: bool
) -> None:
    """A thread may take some of the sequences, or its part of each step."""
    if projection and (name != "lstm" or size <= projection):
        pytest.skip("only LSTM has smaller projections")
    torch.manual_seed(1)
    more = {"proj_size": projection} if projection else {}
    module = module_of(name, 5, size, bidirectional=bidirectional, **more)
    count = 2 if bidirectional else 1
    x = torch.randn(150, batch, 5)
    states = [torch.randn(count, batch, projection or size)]
    if name == "lstm":
        states.append(torch.randn(count, batch, size))
    weights = [p.detach() for p in module.parameters()]
    expected = whole(name, x, states, weights, bidirectional=bidirectional)
    try:
        for threads in (2, 3, 4):
            slim.library.aoti_slim_test_set_threads(threads)
            actual = whole(name, x, states, weights, bidirectional=bidirectional)
            for own, theirs in zip(actual, expected, strict=True):
                assert_equal(own, theirs, rtol=0, atol=0)
    finally:
        slim.library.aoti_slim_test_set_threads(1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whole_layers_of_special_values(name: str, dtype: torch.dtype) -> None:
    module = module_of(name, 1, 5).to(dtype)
    x = torch.tensor([[-1e30, 1e30, math.inf, -math.inf, math.nan]], dtype=dtype).view(1, 5, 1)
    state = torch.full((1, 5, 5), 0.5, dtype=dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.25)
        given = (state, state) if name == "lstm" else state
        expected = module(x, given)[0]
    states = [state, state] if name == "lstm" else [state]
    weights = [p.detach() for p in module.parameters()]
    assert_equal(whole(name, x, states, weights)[0], expected)
    assert states[0].eq(0.5).all()  # the caller's, which is only read


def test_whole_layers_of_no_sequences() -> None:
    weights = [torch.ones(12, 3), torch.ones(12, 4), torch.ones(12), torch.ones(12)]
    output, last = whole("gru", torch.ones(5, 0, 3), [torch.ones(1, 0, 4)], weights)
    assert output.shape == (5, 0, 4) and last.shape == (1, 0, 4)


S = torch.ones(1, 2, 5)
FULL = [*W, torch.ones(20), torch.ones(20)]


@pytest.mark.parametrize(
    ("x", "states", "weights", "changed", "message"),
    [
        (X[0], [S, S], FULL, {}, "lstm: the input has 2 dims, must have 3"),
        (X[:0], [S, S], FULL, {}, "lstm: the input has no steps, must have at least 1"),
        (X.int(), [S, S], FULL, {}, "lstm: the input is int32, must be float32"),
        (X, [S[:, :1], S], FULL, {}, r"the hidden state is \[1, 1, 5\], must be \[1, 2, 5\]"),
        (X, [S, S[0]], FULL, {}, r"the cell state is \[2, 5\], must be \[1, 2, 0\]"),
        (X, [S, S.double()], FULL, {}, "the cell state is float64, must be float32"),
        (X, [S], FULL, {}, "there are 1 states, must be 2"),
        (X, [S, S], W, {}, "there are 2 parameters, must be 4"),
        (X, [S, S], FULL, {"layers": 0}, "the number of layers is 0"),
        (X, [S, S], [W[0][:, :3], *FULL[1:]], {}, r"weight is \[20, 3\], must be \[20, 4\]"),
        (X, [S, S], [*FULL[:3], torch.ones(3)], {}, r"bias is \[3\], must be \[20\]"),
        (
            torch.ones(3, 2, 4), [torch.ones(2, 2, 5)] * 2, FULL * 2,
            {"layers": 2, "train": True, "dropout": 0.5}, "dropout in training is not supported",
        ),
    ],
)  # fmt: skip
def test_errors_of_whole_layers(
    x: Tensor, states: list[Tensor], weights: list[Tensor], changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        whole("lstm", x, states, weights, **changed)
