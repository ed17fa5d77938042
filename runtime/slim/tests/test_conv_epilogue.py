"""Convolutions with what follows them (ops/conv_epilogue.cc), against PyTorch's operators."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
import platform
from collections.abc import Iterator
from typing import Any

import amx
import cpu_levels
import harness
import pytest
import torch
from aoti_driver.inductor.convolution_epilogue import OPERATOR, Activation
from aoti_driver.packing import convolution

_TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def slim() -> harness.Slim:
    return harness.load()


@pytest.fixture(params=cpu_levels.known())
def level(slim: harness.Slim, request: pytest.FixtureRequest) -> Iterator[int]:
    with cpu_levels.chosen(slim, request.param):
        yield request.param


# The levels; the last one without the instruction for pairs of bfloat16; and, where that is there,
# the last one with AMX.
_NARROW_LEVELS = [
    *((level, "") for level in cpu_levels.known()),
    (cpu_levels.known()[-1], "without pairs"),
    *((level, "AMX") for level in cpu_levels.known() if level == 2 and amx.can_be_emulated()),
]


@pytest.fixture(params=_NARROW_LEVELS, ids=str)
def narrow_level(slim: harness.Slim, request: pytest.FixtureRequest) -> Iterator[int]:
    level, instructions = request.param
    with cpu_levels.chosen(slim, level):
        if instructions == "AMX":
            amx.emulate(slim)
        else:
            amx.hide(slim)
        # With AMX, pairs are taken even where AVX512_BF16 is slow.
        allowed = {"without pairs": 0, "AMX": -1}.get(instructions, 1)
        slim.library.aoti_slim_allow_bfloat16(allowed)
        try:
            yield level
        finally:
            amx.restore(slim)
            slim.library.aoti_slim_allow_bfloat16(-1)


@dataclasses.dataclass
class Call:
    x: torch.Tensor
    weight: torch.Tensor
    scale: torch.Tensor | None = None
    shift: torch.Tensor | None = None
    residual: torch.Tensor | None = None
    stride: tuple[int, ...] = (1, 1)
    before: tuple[int, ...] = (0, 0)
    after: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    activation: int = Activation.NONE
    residual_last: bool = False
    low: float = 0.0
    high: float = 0.0
    transposed: bool = False
    narrow: bool = False
    packed: torch.Tensor | None = None
    kind: bytes = b""
    into: torch.Tensor | None = None  # writes to a tensor of this size, among others

    def expected(self) -> torch.Tensor:
        tensors = (self.x, self.weight, self.scale, self.shift, self.residual)
        wide = [t if t is None else t.double() for t in tensors]
        result: torch.Tensor = OPERATOR(
            *wide,
            *(list(v) for v in (self.stride, self.before, self.after, self.dilation)),
            *(self.groups, self.activation, self.residual_last, self.low, self.high),
            self.transposed,
        )
        return result

    def run(self, slim: harness.Slim) -> torch.Tensor:
        tensors = (self.x, self.weight, self.scale, self.shift, self.residual)
        handles = [None if t is None else slim.borrow(t) for t in tensors]
        if self.packed is not None:
            data, size = ctypes.c_void_p(self.packed.data_ptr()), self.packed.numel()
            slim.library.aoti_slim_set_packed(handles[1], self.kind, data, ctypes.c_size_t(size))
        geometry = (*self.stride, *self.before, *self.after, *self.dilation)
        return slim.result_in(
            self.into,
            slim.library.aoti_slim_convolution_epilogue,
            handles,
            *(handle if handle is not None else ctypes.c_void_p() for handle in handles),
            (ctypes.c_int64 * len(geometry))(*geometry),
            ctypes.c_int64(len(self.stride)),
            ctypes.c_int64(self.groups),
            ctypes.c_int32(self.transposed),
            ctypes.c_int32(self.activation),
            ctypes.c_int32(self.residual_last),
            ctypes.c_float(self.low),
            ctypes.c_float(self.high),
            ctypes.c_int32(self.narrow),
        )


def pack_weight(call: Call) -> None:
    kind = convolution.kind_of(call.weight, call.groups, transposed=call.transposed)
    assert kind is not None
    # The library keeps pointers to both.
    call.kind = kind.encode()
    call.packed = convolution.pack(kind, call.weight, call.groups)


def check(slim: harness.Slim, call: Call, expected: torch.Tensor | None = None) -> torch.Tensor:
    """expected: what call.expected() is as float32, if that is known."""
    if expected is None:
        expected = call.expected().float()
    slim.library.aoti_slim_test_set_threads(1)
    actual = call.run(slim)
    assert actual.movedim(1, -1).is_contiguous()
    finite = expected[expected.isfinite()]
    scale = max(float(finite.abs().max()) if finite.numel() else 0.0, 1e-3)
    harness.assert_equal(actual, expected, rtol=_TOLERANCE, atol=_TOLERANCE * scale)
    slim.library.aoti_slim_test_set_threads(2)
    harness.assert_equal(call.run(slim), actual, rtol=0, atol=0)
    among = dataclasses.replace(call, into=actual)
    if call.residual is not None:
        _, among.residual = harness.among_others(call.residual, float("nan"), others=5)
    harness.assert_equal(among.run(slim), actual, rtol=0, atol=0)
    slim.library.aoti_slim_test_set_threads(1)
    among.narrow, among.into = True, actual.bfloat16()
    harness.assert_equal(among.run(slim), actual.bfloat16(), rtol=0, atol=0)
    rounded = dataclasses.replace(call, narrow=True).run(slim)
    assert rounded.movedim(1, -1).is_contiguous()
    harness.assert_equal(rounded, actual.bfloat16(), rtol=0, atol=0)
    if call.residual is not None:
        narrow = call.residual.bfloat16()
        wide = dataclasses.replace(call, residual=narrow.float()).run(slim)
        same = dataclasses.replace(call, residual=narrow).run(slim)
        harness.assert_equal(same, wide, rtol=0, atol=0)
        _, among.residual = harness.among_others(narrow, float("nan"), others=5)
        harness.assert_equal(among.run(slim), wide.bfloat16(), rtol=0, atol=0)
    return actual


# batch, input channels, size, output channels, kernel, stride, before, after, dilation, groups
_LAYERS: list[tuple[Any, ...]] = [
    (2, 3, (17, 19), 37, (3, 3), (2, 2), (0, 0), (1, 1), (1, 1), 1),
    (1, 40, (14, 13), 64, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (2, 33, (6, 7), 70, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (1, 16, (9, 9), 16, (1, 1), (2, 2), (0, 0), (0, 0), (1, 1), 1),
    (1, 16, (13, 11), 48, (3, 5), (2, 1), (1, 0), (2, 3), (2, 1), 1),
    (1, 36, (12, 30), 36, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 36),
    (2, 40, (15, 16), 40, (5, 5), (2, 2), (1, 1), (2, 2), (1, 1), 40),
    (1, 16, (15, 16), 16, (7, 7), (1, 1), (3, 3), (3, 3), (1, 1), 16),
    (1, 36, (7, 7), 36, (5, 5), (1, 1), (2, 2), (2, 2), (1, 1), 36),
    (1, 32, (6, 6), 32, (7, 7), (1, 1), (3, 3), (3, 3), (1, 1), 32),
    (1, 16, (9, 3), 16, (5, 5), (1, 1), (2, 2), (2, 2), (1, 1), 16),
    (1, 24, (9, 10), 48, (3, 3), (1, 1), (0, 2), (2, 0), (1, 1), 4),
    (1, 36, (9, 8), 36, (3, 3), (1, 1), (1, 1), (1, 1), (1, 2), 9),
    (1, 1, (1, 1), 1, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (2, 48, (6, 7), 60, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 3),
    # Groups of few channels, in several bands of rows: images, volumes, lines.
    (2, 48, (60, 41), 96, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 3),
    (1, 34, (70, 90), 70, (3, 3), (2, 2), (0, 1), (2, 1), (1, 1), 2),
    (1, 48, (130, 20), 32, (3, 3), (1, 1), (3, 2), (2, 2), (2, 2), 2),
    (1, 20, (5, 12, 40), 40, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 2),
    (2, 48, (2000,), 32, (5,), (1,), (2,), (2,), (1,), 2),
    (1, 33, (3001,), 36, (7,), (2,), (4,), (1,), (3,), 3),
    # Winograd's algorithm: all sizes even, all odd, zeros on one side, many tiles, and these with
    # weights in two parts.
    (2, 32, (8, 10), 32, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (3, 37, (9, 7), 70, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (2, 24, (11, 30), 25, (3, 3), (1, 1), (0, 2), (2, 0), (1, 1), 1),
    (1, 36, (90, 91), 40, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (1, 160, (42, 46), 230, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    # And in volumes: zeros before and behind, some slices of the filter always see zeros, steps and
    # dilations between slices, a filter of one slice.
    (2, 24, (4, 8, 9), 40, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (1, 33, (2, 20, 11), 24, (3, 3, 3), (1, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 1), 1),
    (2, 30, (1, 16, 16), 32, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (2, 32, (11, 7, 8), 25, (2, 3, 3), (3, 1, 1), (0, 1, 1), (1, 1, 1), (2, 1, 1), 1),
    (1, 40, (3, 40, 42), 70, (1, 3, 3), (1, 1, 1), (0, 1, 1), (0, 1, 1), (1, 1, 1), 1),
    (1, 100, (4, 23, 30), 100, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    # Weights that several tiles read together: a few tiles, and many.
    (1, 300, (7, 9), 40, (3, 3), (1, 1), (1, 1), (1, 1), (1, 2), 1),
    (1, 530, (5, 8), 33, (2, 3), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (3, 460, (12, 11), 50, (3, 3), (1, 2), (1, 1), (1, 1), (1, 1), 1),
    # Rows of several tiles: pixels at equal distances, some of which have taps outside the image.
    (1, 20, (5, 45), 24, (3, 3), (1, 1), (1, 1), (1, 1), (1, 2), 1),
    (1, 24, (3, 64), 72, (1, 1), (1, 2), (0, 0), (0, 0), (1, 1), 1),
    # Few channels in the results: whole tiles and some pixels more; inputs that don't fill their
    # vectors; steps, dilations; pixels that follow each other through rows and images; a line; a
    # volume.
    (1, 16, (9, 40), 1, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (2, 37, (20, 21), 3, (5, 5), (1, 1), (2, 0), (2, 4), (1, 1), 1),
    (1, 66, (20, 30), 2, (3, 2), (1, 2), (1, 0), (3, 1), (2, 1), 1),
    (3, 130, (13, 17), 4, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (1, 256, (15, 15), 7, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (2, 40, (301,), 1, (7,), (1,), (3,), (3,), (1,), 1),
    (1, 16, (4, 9, 10), 1, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    # Tiles that end with the row: one vector of channels.
    (2, 5, (7, 41), 13, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (1, 12, (3, 4, 25), 4, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    # Steps larger than the kernel: no tap reads some rows of the image.
    (1, 3, (26, 23), 40, (3, 3), (4, 4), (1, 1), (1, 1), (1, 1), 1),
    (2, 2, (19, 21), 20, (2, 3), (5, 4), (1, 0), (1, 2), (1, 1), 1),
    # Lines and volumes.
    (2, 3, (50,), 40, (3,), (2,), (1,), (0,), (1,), 1),
    (2, 36, (41,), 33, (2,), (1,), (8,), (0,), (8,), 1),
    (1, 40, (33,), 40, (31,), (1,), (15,), (15,), (1,), 40),
    (1, 16, (21,), 16, (3,), (2,), (1,), (1,), (2,), 2),
    (2, 3, (5, 8, 9), 16, (3, 3, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (1, 20, (3, 5, 6), 36, (1, 3, 2), (1, 1, 2), (0, 1, 0), (0, 1, 1), (1, 2, 1), 1),
    (1, 12, (4, 5, 9), 12, (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 12),
]
# Few pixels, for some of which all taps are outside; a step; rows that are copied; weights that
# several tiles read together; groups; odd numbers of channels.
_PAIRS: list[tuple[Any, ...]] = [
    (2, 40, (5, 6), 33, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (1, 16, (3, 3), 20, (5, 5), (1, 1), (4, 4), (4, 4), (2, 2), 1),
    (2, 64, (14, 14), 130, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (1, 2048, (7, 7), 65, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (1, 128, (28, 28), 96, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
    (1, 1024, (9, 9), 40, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (1, 64, (10, 11), 96, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 4),
    (2, 32, (50,), 40, (3,), (1,), (1,), (1,), (1,), 1),
    (1, 18, (3, 6, 7), 34, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (2, 3, (30, 31), 40, (7, 7), (2, 2), (3, 3), (3, 3), (1, 1), 1),
    (2, 5, (9, 12), 33, (3, 3), (1, 1), (1, 1), (1, 1), (1, 2), 1),
    (1, 3, (5, 8, 9), 20, (3, 3, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (2, 9, (41,), 33, (1,), (1,), (0,), (0,), (1,), 1),
]
# Images of more numbers than are widened at a time: some rows, with zeros around them, steps and
# dilations; some of several images; groups. Those that are widened as a whole: with more zeros than
# a filter has rows; a volume; a line.
_PARTS: list[tuple[Any, ...]] = [
    (2, 24, (91, 260), 20, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    (1, 18, (240, 131), 9, (5, 3), (2, 2), (0, 1), (3, 1), (2, 1), 1),
    (1, 64, (64, 150), 8, (1, 1), (3, 1), (0, 0), (0, 0), (1, 1), 1),
    (5, 16, (100, 120), 12, (2, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    (1, 32, (131, 140), 32, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 32),
    (1, 24, (150, 160), 4, (3, 3), (1, 1), (300, 1), (0, 1), (1, 1), 1),
    (1, 24, (150, 160), 4, (3, 3), (1, 1), (0, 1), (300, 1), (1, 1), 1),
    (1, 2, (2, 700, 401), 3, (2, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    (1, 16, (40000,), 6, (3,), (1,), (1,), (1,), (1,), 1),
]
# activation, lower number, upper number
_ACTIVATIONS = [
    (Activation.NONE, 0.0, 0.0),
    (Activation.CLAMP, 0.0, float("inf")),
    (Activation.CLAMP, 0.0, 6.0),
    (Activation.SILU, 0.0, 0.0),
    (Activation.HARDSWISH, 0.0, 0.0),
    (Activation.LEAKY_RELU, 0.1, 0.0),
    (Activation.GELU, 0.0, 0.0),
]


# The padding behind is less by the output_padding.
_TRANSPOSED: list[tuple[Any, ...]] = [
    (2, 33, (5, 6), 40, (2, 2), (2, 2), (0, 0), (0, 0), (1, 1), 1),
    (1, 20, (7, 4), 36, (3, 4), (2, 3), (1, 0), (0, -2), (1, 1), 1),
    (1, 7, (4, 5), 3, (3, 3), (1, 2), (2, 1), (2, 0), (2, 1), 1),
    (2, 6, (9,), 10, (4,), (2,), (1,), (1,), (1,), 1),
    (1, 5, (3, 4, 2), 18, (2, 3, 2), (2, 1, 2), (0, 1, 0), (0, 1, -1), (1, 1, 1), 1),
    (1, 40, (12, 13), 3, (4, 4), (2, 2), (1, 1), (1, 1), (1, 1), 1),
]


def make(layer: tuple[Any, ...], normed: bool, residual: str) -> Call:
    n, c, size, o, kernel, stride, before, after, dilation, groups = layer
    torch.manual_seed(0)
    weight = torch.randn(o, c // groups, *kernel)
    # Sums of about the size of one number, whose rounding errors are small beside the activations.
    call = Call(torch.randn(n, c, *size), weight / weight[0].numel() ** 0.5)
    call.stride, call.before, call.after = stride, before, after
    call.dilation, call.groups = dilation, groups
    call.shift = torch.randn(o)
    if normed:
        call.scale = torch.randn(o)
    if residual != "none":
        grid = [
            (pixels + low + high - distance * (taps - 1) - 1) // step + 1
            for pixels, low, high, distance, taps, step in zip(
                size, before, after, dilation, kernel, stride, strict=True
            )
        ]
        call.residual = torch.randn(n, o, *grid)
        if residual == "channels last":
            call.residual = channels_last(call.residual)
    return call


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1)


def followed(layer: tuple[Any, ...], at: int, normed: bool) -> Call:
    """A call with one of _ACTIVATIONS."""
    call = make(layer, normed, ("none", "channels last", "contiguous")[at % 3])
    call.activation, call.low, call.high = _ACTIVATIONS[at]
    call.residual_last = not normed
    return call


@functools.cache  # for all levels and layouts
def expected_of(layer: tuple[Any, ...], at: int, normed: bool) -> torch.Tensor:
    return followed(layer, at, normed).expected().float()


@pytest.mark.parametrize("layer", _LAYERS, ids=str)
@pytest.mark.parametrize("layout", [torch.Tensor.contiguous, channels_last])
def test_layers(slim: harness.Slim, level: int, layer: tuple[Any, ...], layout: Any) -> None:
    for at in range(len(_ACTIVATIONS)):
        for normed in (True, False):
            call = followed(layer, at, normed)
            call.x = layout(call.x)
            check(slim, call, expected_of(layer, at, normed))


@pytest.mark.parametrize("at", [at for at, layer in enumerate(_LAYERS) if layer[3] > 1])
def test_residuals_of_fewer_channels(slim: harness.Slim, level: int, at: int) -> None:
    layer = _LAYERS[at]
    call = followed(layer, 1 + at % 2, at % 3 == 0)  # ReLU after the residual is quicker
    whole = make(layer, True, "contiguous").residual
    assert whole is not None
    fewer = (1, layer[3] // 2, layer[3] - 1)[at % 3]
    for layout in (torch.Tensor.contiguous, channels_last):
        call.residual = layout(whole[:, :fewer].clone())
        check(slim, call)


@pytest.mark.parametrize("layout", [torch.Tensor.contiguous, channels_last])
@pytest.mark.parametrize("layer", _TRANSPOSED, ids=str)
def test_transposed(slim: harness.Slim, level: int, layer: tuple[Any, ...], layout: Any) -> None:
    call = make(layer, True, "none")
    call.transposed = True
    call.weight = call.weight.transpose(0, 1).contiguous()
    call.residual = torch.randn(call.expected().shape)
    call.x = layout(call.x)
    for call.activation, call.low, call.high in _ACTIVATIONS:
        check(slim, call)
    expected = call.run(slim)
    pack_weight(call)
    harness.assert_equal(call.run(slim), expected, rtol=0, atol=0)


def narrowed(call: Call) -> Call:
    return dataclasses.replace(call, x=call.x.bfloat16(), weight=call.weight.bfloat16())


def products(layer: tuple[Any, ...]) -> int:
    """About the number of multiplications."""
    n, c, size, o, kernel, stride, _, _, _, groups = layer
    return int(n * o * c // groups * math.prod(size) * math.prod(kernel) // math.prod(stride))


@pytest.mark.parametrize(
    ("narrow_level", "layer"),
    [
        (level, layer)
        for level in _NARROW_LEVELS
        for layer in [*_LAYERS, *_PAIRS]
        # Where AMX is emulated, an instruction takes microseconds.
        if level[1] != "AMX" or products(layer) < 2**25
    ],
    ids=str,
    indirect=["narrow_level"],
)
def test_bfloat16(slim: harness.Slim, narrow_level: int, layer: tuple[Any, ...]) -> None:
    """The sums are those of float32, from the plain weights and from packed ones."""
    for last in (False, True):
        call = narrowed(followed(layer, 3 if last else 1, not last))
        if last:
            call.x = channels_last(call.x)
        expected = check(slim, call)
        assert expected.dtype == torch.float32
        pack_weight(call)
        call.weight = torch.full_like(call.weight, torch.nan)
        harness.assert_equal(call.run(slim), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "narrow_level", [(cpu_levels.known()[-1], "without pairs")], ids=str, indirect=True
)
@pytest.mark.parametrize("layer", _PARTS, ids=str)
@pytest.mark.parametrize("layout", [torch.Tensor.contiguous, channels_last])
def test_bfloat16_in_parts(
    slim: harness.Slim, narrow_level: int, layer: tuple[Any, ...], layout: Any
) -> None:
    for at in (1, 2):
        call = narrowed(followed(layer, at, True))
        call.x = layout(call.x)
        check(slim, call)


@pytest.mark.skipif(not amx.can_be_emulated() or amx.is_there(), reason="counts what is emulated")
@pytest.mark.parametrize("transposed", [False, True])
def test_bfloat16_takes_amx(slim: harness.Slim, transposed: bool) -> None:
    call = narrowed(
        make((1, 32, (4, 7), 32, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1), True, "none")
    )
    call.transposed = transposed
    with cpu_levels.chosen(slim, 2):
        amx.emulate(slim)
        try:
            before = amx.emulated(slim)
            call.run(slim)
            # 28 pixels are two tiles, 32 channels another two, and 32 inputs one step.
            assert amx.emulated(slim) == before + 4
        finally:
            amx.restore(slim)


def test_bfloat16_after_one_of_nan(slim: harness.Slim, narrow_level: int) -> None:
    """What the call before has left in memory does not come into the sums."""
    wide = narrowed(
        make((1, 64, (9, 9), 32, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), True, "none")
    )
    wide.x.fill_(torch.nan)
    call = narrowed(make(_PAIRS[0], True, "none"))
    expected = call.expected().float()
    for _ in range(3):
        assert bool(wide.run(slim).isnan().all())
        check(slim, call, expected)


@pytest.mark.parametrize("layer", [_PAIRS[0], _PAIRS[10]], ids=["even", "odd"])
def test_bfloat16_that_is_not_in_pairs(
    slim: harness.Slim, narrow_level: int, layer: tuple[Any, ...]
) -> None:
    """Channels that begin at an odd number, and pixels with an odd number between them. Nothing
    comes from the channels beside them.
    """
    call = narrowed(make(layer, True, "none"))
    n, c, *size = call.x.shape
    expected = check(slim, call)
    for before, behind in ((1, 0), (0, 1), (1, 1), (2, 2)):
        around = channels_last(torch.full((n, before + c + behind, *size), torch.nan).bfloat16())
        around[:, before : before + c] = call.x
        call.x = around[:, before : before + c]
        harness.assert_equal(call.run(slim), expected, rtol=0, atol=0)


def test_bfloat16_transposed(slim: harness.Slim, narrow_level: int) -> None:
    for layer in _TRANSPOSED:
        call = narrowed(make(layer, True, "none"))
        call.transposed = True
        call.weight = call.weight.transpose(0, 1).contiguous()
        expected = check(slim, call)
        pack_weight(call)
        call.weight = torch.full_like(call.weight, torch.nan)
        harness.assert_equal(call.run(slim), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "narrow_level", [(cpu_levels.known()[-1], "without pairs")], ids=str, indirect=True
)
def test_a_large_bfloat16_transposed(slim: harness.Slim, narrow_level: int) -> None:
    call = narrowed(
        make((1, 20, (170, 160), 5, (3, 4), (1, 1), (1, 0), (1, 0), (1, 1), 1), True, "none")
    )
    call.transposed = True
    call.weight = call.weight.transpose(0, 1).contiguous()
    check(slim, call)


def test_rounding_to_bfloat16(slim: harness.Slim, level: int) -> None:
    """To the nearest number, the even one of two; NaN and infinity remain, and so do subnormals."""
    bits = [0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x00018000]
    x = torch.tensor([*bits, 0x80000000 - 2**32], dtype=torch.int32).view(torch.float32)
    for channels in (1, 8, 40):
        call = Call(x.reshape(1, 1, 2, 4).repeat(1, channels, 1, 1), torch.ones(channels, 1, 1, 1))
        call.groups, call.narrow = channels, True
        harness.assert_equal(call.run(slim), call.x.bfloat16(), rtol=0, atol=0)


def test_subnormal_numbers_are_zeros(slim: harness.Slim, level: int) -> None:
    """On x86-64, unless the result is rounded to bfloat16."""
    x, weight = torch.full((1, 16, 20, 20), 2.0**-130), torch.full((16, 16, 3, 3), 2.0**90)
    call = Call(x, weight, shift=torch.zeros(16))
    assert bool((call.run(slim) == 0).all()) == (platform.machine() == "x86_64")
    call.narrow = True
    assert bool((call.run(slim) > 0).all())


def test_nothing_follows(slim: harness.Slim, level: int) -> None:
    call = make(_LAYERS[1], False, "none")
    call.shift = None
    check(slim, call)
    call.scale = torch.randn(64)
    check(slim, call)


def test_packed_weights(slim: harness.Slim) -> None:
    for layer in (_LAYERS[1], _LAYERS[5], _LAYERS[11]):
        call = make(layer, True, "channels last")
        call.activation, call.high = Activation.CLAMP, 6.0
        expected = check(slim, call)
        pack_weight(call)
        call.weight = torch.full_like(call.weight, torch.nan)
        harness.assert_equal(call.run(slim), expected, rtol=0, atol=0)


@pytest.mark.parametrize(("activation", "low", "high"), _ACTIVATIONS)
def test_special_values(
    slim: harness.Slim, level: int, activation: int, low: float, high: float
) -> None:
    values = [torch.nan, -100.0, -2.0, -0.0, 0.0, 3.0, 100.0, torch.inf]
    x = torch.tensor(values).reshape(1, 1, 2, 4)
    for groups, channels in ((1, 1), (20, 20)):
        call = Call(x.repeat(1, channels, 1, 1), torch.ones(channels, 1, 1, 1), groups=groups)
        call.activation, call.low, call.high = activation, low, high
        check(slim, call)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_results_that_are_not_finite(slim: harness.Slim, level: int, value: float) -> None:
    """Only those that read the value, also where four results share products."""
    call = make((2, 32, (8, 10), 40, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), True, "none")
    finite = call.run(slim)
    call.x[1, 5, 3, 4] = value
    actual, expected = call.run(slim), call.expected()
    read = torch.zeros_like(expected, dtype=torch.bool)
    read[1, :, 2:5, 3:6] = True
    assert torch.equal(actual.isfinite(), ~read)
    assert torch.equal(actual.isnan(), expected.isnan())
    harness.assert_equal(actual[~read], finite[~read], rtol=_TOLERANCE, atol=_TOLERANCE)
    call.x[1, 5, 3, 4] = 0
    call.weight[3, 1, 2, 2] = value
    actual, expected = call.run(slim), call.expected()
    assert torch.equal(actual.isfinite(), expected.isfinite())
    assert not actual[:, 3].isfinite().all() and actual[:, :3].isfinite().all()


def test_empty(slim: harness.Slim) -> None:
    call = make(_LAYERS[1], True, "none")
    call.x = call.x[:0]
    assert call.run(slim).shape == (0, 64, 14, 13)


def test_errors(slim: harness.Slim) -> None:
    def message(**changes: Any) -> str:
        call = make(_LAYERS[1], True, "contiguous")
        for name, value in changes.items():
            setattr(call, name, value)
        with pytest.raises(harness.OpError) as e:
            call.run(slim)
        return str(e.value)

    assert "stride, dilation or padding is too large" in message(
        weight=torch.ones(40, 64, 3, 3), transposed=True, after=(-(2**63), 0)
    )
    assert "scale must be float32 of size [64]" in message(scale=torch.ones(63))
    assert "shift must be float32 of size [64]" in message(shift=torch.ones(64).double())
    assert "the residual must be float32 or bfloat16 and of the result's size" in message(
        residual=torch.ones(1, 64, 14, 12)
    )
    assert "or have fewer channels" in message(residual=torch.ones(1, 65, 14, 13))
    assert "no activation 6" in message(activation=6)
    other = (torch.ones(1, 64, 14, 12), torch.ones(1, 64, 14, 13, 1), torch.ones(1, 63, 14, 13))
    for into in other:
        assert "the tensor for the result must be float32, of the result's size" in message(
            into=into
        )
        assert "the tensor for the result must be bfloat16, of the result's size" in message(
            narrow=True, into=into
        )
    assert "input has 3 dims, must have 4 for 2 spatial dims" in message(x=torch.ones(1, 40, 14))
    assert "padding is -1, must not be negative" in message(after=(0, -1))
    assert "for a convolution of float32" in message(
        x=torch.ones(1, 40, 14, 13).double(), weight=torch.ones(64, 40, 3, 3).double()
    )
