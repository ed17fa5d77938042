"""Chains of convolutions (aoti_slim_convolution_chain), against their stages in float64."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import amx
import cpu_levels
import harness
import pytest
import torch
from aoti_driver.inductor.convolution_chain import OPERATOR
from aoti_driver.inductor.convolution_epilogue import Activation
from aoti_driver.packing import convolution

_TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def slim() -> harness.Slim:
    return harness.load()


@pytest.fixture(params=cpu_levels.known())
def level(slim: harness.Slim, request: pytest.FixtureRequest) -> Iterator[int]:
    with cpu_levels.chosen(slim, request.param):
        yield request.param


@dataclasses.dataclass
class Chain:
    x: torch.Tensor
    weights: list[torch.Tensor]
    scales: list[torch.Tensor | None]
    shifts: list[torch.Tensor | None]
    residual: torch.Tensor | None
    stride: tuple[int, int]
    before: tuple[int, int]
    after: tuple[int, int]
    dilation: tuple[int, int]
    activations: list[int]
    residual_last: bool = False
    packed: bool = True
    narrow: bool = False
    into: torch.Tensor | None = None  # writes to a tensor of this size, among others

    @property
    def groups(self) -> int:
        filters = self.weights[1] if len(self.weights) > 1 else self.weights[0]
        return filters.shape[0] // filters.shape[1]

    def numbers(self) -> tuple[list[float], list[float]]:
        return [0.0, -0.5, 0.1][: len(self.weights)], [6.0, 2.0, 0.3][: len(self.weights)]

    def expected(self) -> torch.Tensor:
        def wide(values: Any) -> Any:
            return [value if value is None else value.double() for value in values]

        (x, residual) = wide((self.x, self.residual))
        tensors = (x, wide(self.weights), wide(self.scales), wide(self.shifts), residual)
        lists = (list(v) for v in (self.stride, self.before, self.after, self.dilation))
        options = (self.groups, self.activations, self.residual_last, *self.numbers())
        result: torch.Tensor = OPERATOR(*tensors, *lists, *options)
        return result

    def in_bfloat16(self, *, residual: bool, narrow: bool) -> Chain:
        """The chain with products of bfloat16. residual, narrow: whether these are bfloat16 too."""
        first, filters, *third = self.weights
        assert self.residual is not None
        return dataclasses.replace(
            self,
            x=self.x.bfloat16(),
            weights=[first.bfloat16(), filters, *(w.bfloat16() for w in third)],
            residual=self.residual.bfloat16() if residual else self.residual,
            narrow=narrow,
        )

    def run(self, slim: harness.Slim) -> torch.Tensor:
        owned = []
        keep: list[Any] = []

        def handle(tensor: torch.Tensor | None) -> Any:
            if tensor is None:
                return ctypes.c_void_p()
            owned.append(slim.borrow(tensor))
            return owned[-1]

        def handles(tensors: Any) -> Any:
            return (ctypes.c_void_p * len(tensors))(*(handle(t).value for t in tensors))

        weights = handles(self.weights)
        for i, weight in enumerate(self.weights):
            groups = self.groups if i == 1 else 1
            kind = convolution.kind_of(weight, groups, transposed=False)
            if self.packed and kind is not None:
                data = convolution.pack(kind, weight, groups)
                keep += [data, kind.encode()]
                address, size = ctypes.c_void_p(data.data_ptr()), ctypes.c_size_t(data.numel())
                pointer = ctypes.c_void_p(weights[i])
                slim.library.aoti_slim_set_packed(pointer, keep[-1], address, size)
        count = len(self.weights)
        lows, highs = self.numbers()
        geometry = (*self.stride, *self.before, *self.after, *self.dilation)
        arguments = (
            *(handle(self.x), ctypes.c_int64(count), weights),
            *(handles(self.scales), handles(self.shifts), handle(self.residual)),
            *((ctypes.c_int64 * 8)(*geometry), ctypes.c_int64(self.groups)),
            (ctypes.c_int32 * count)(*self.activations),
            ctypes.c_int32(self.residual_last),
            *((ctypes.c_float * count)(*lows), (ctypes.c_float * count)(*highs)),
            ctypes.c_int32(self.narrow),
        )
        function = slim.library.aoti_slim_convolution_chain
        return slim.result_in(self.into, function, owned, *arguments)


def make(
    batch: int,
    size: tuple[int, int],
    channels: tuple[int, ...],
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (1, 1, 1, 1),  # top, left, bottom, right
    dilation: tuple[int, int] = (1, 1),
    group: int = 1,
) -> Chain:
    """channels: of the input, of the first two results, and of the third one if there is one."""
    torch.manual_seed(0)
    c, m, *third = channels
    x = torch.randn(batch, c, *size).contiguous(memory_format=torch.channels_last)
    weights = [torch.randn(m, c, 1, 1) / c**0.5, torch.randn(m, group, *kernel)]
    weights += [torch.randn(o, m, 1, 1) / m**0.5 for o in third]
    outs = [m, m, *third]
    chain = Chain(
        x=x,
        weights=weights,
        scales=[torch.rand(o) + 0.5 for o in outs],
        shifts=[torch.randn(o) for o in outs],
        residual=None,
        stride=stride,
        before=padding[:2],
        after=padding[2:],
        dilation=dilation,
        activations=[int(a) for a in (Activation.CLAMP, Activation.CLAMP, Activation.NONE)],
    )
    del chain.activations[len(outs) :]
    chain.residual = torch.randn(chain.expected().shape).contiguous(
        memory_format=torch.channels_last
    )
    return chain


def check(slim: harness.Slim, chain: Chain, expected: torch.Tensor | None = None) -> None:
    if expected is None:
        expected = chain.expected().float()
    slim.library.aoti_slim_test_set_threads(1)
    actual = chain.run(slim)
    scale = float(expected.abs().max())
    harness.assert_equal(actual, expected, rtol=_TOLERANCE, atol=_TOLERANCE * scale)
    slim.library.aoti_slim_test_set_threads(2)
    harness.assert_equal(chain.run(slim), actual, rtol=0, atol=0)
    residual = chain.residual
    if residual is not None:
        _, residual = harness.among_others(residual, float("nan"), others=5)
    _, x = harness.among_others(chain.x, float("nan"))
    among = dataclasses.replace(chain, x=x, residual=residual, into=actual)
    harness.assert_equal(among.run(slim), actual, rtol=0, atol=0)
    slim.library.aoti_slim_test_set_threads(1)


# The first result has more than 256 * 1024 floats, so these are computed by rows.
_LARGE: dict[str, dict[str, Any]] = {
    "expanded and projected": {"batch": 1, "size": (61, 67), "channels": (24, 144, 24)},
    "two stages": {"batch": 3, "size": (29, 31), "channels": (40, 120)},
    "stride": {
        "batch": 2,
        "size": (40, 61),
        "channels": (16, 96, 24),
        "stride": (2, 2),
        "padding": (0, 0, 1, 1),
    },
    "wide filter": {
        "batch": 9,
        "size": (14, 13),
        "channels": (36, 200, 33),
        "kernel": (5, 5),
        "padding": (2, 2, 2, 2),
    },
    "steps over rows": {
        "batch": 1,
        "size": (90, 40),
        "channels": (8, 100, 8),
        "kernel": (2, 3),
        "stride": (3, 1),
        "padding": (0, 1, 0, 1),
    },
    "dilation": {
        "batch": 2,
        "size": (37, 33),
        "channels": (19, 130, 48),
        "dilation": (3, 2),
        "padding": (5, 2, 4, 2),
    },
    "padding beyond the filter": {
        "batch": 8,
        "size": (6, 60),
        "channels": (12, 96, 16),
        "padding": (4, 1, 5, 1),
    },
    "long rows": {"batch": 1, "size": (3, 2000), "channels": (4, 80, 4)},
    "few channels": {"batch": 1, "size": (300, 310), "channels": (3, 5, 2)},
    "groups of two": {"batch": 4, "size": (33, 32), "channels": (24, 96, 40), "group": 2},
    "odd number between stages": {"batch": 1, "size": (47, 46), "channels": (16, 131, 24)},
}
_SMALL: dict[str, dict[str, Any]] = {
    "small": {"batch": 2, "size": (9, 10), "channels": (12, 48, 20)},
    "one pixel": {"batch": 1, "size": (1, 1), "channels": (5, 7, 3)},
    "many weights": {"batch": 8, "size": (7, 7), "channels": (192, 1152, 192)},
}


@functools.cache
def cases(name: str) -> list[tuple[Chain, torch.Tensor]]:
    """With everything, and without some; and what float64 gives, which takes longest."""
    whole, bare = (make(**(_LARGE | _SMALL)[name]) for _ in range(2))
    bare.residual = bare.scales[0] = bare.shifts[1] = None
    return [(chain, chain.expected().float()) for chain in (whole, bare)]


@pytest.mark.parametrize("name", [*_LARGE, *_SMALL])
def test_chains(slim: harness.Slim, level: int, name: str) -> None:
    for chain, expected in cases(name):
        check(slim, chain, expected)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", [*_LARGE, *_SMALL])
def test_chains_of_bfloat16(
    slim: harness.Slim, level: int, name: str, narrow: bool, residual: bool
) -> None:
    """A chain with unpacked weights, or an odd number of channels, runs stage by stage, as
    convolutions do that are no chain: test_conv_epilogue.py compares those with PyTorch.
    """
    chain = make(**(_LARGE | _SMALL)[name]).in_bfloat16(residual=residual, narrow=narrow)
    if narrow and not residual:
        chain.residual = None
    slim.library.aoti_slim_test_set_threads(1)
    stages = dataclasses.replace(chain, packed=False).run(slim)
    assert stages.dtype == (torch.bfloat16 if narrow else torch.float32)
    in_float32 = OPERATOR(
        *(chain.x, chain.weights, chain.scales, chain.shifts, chain.residual),
        *([*chain.stride], [*chain.before], [*chain.after], [*chain.dilation], chain.groups),
        *(chain.activations, False, *chain.numbers(), narrow),
    ).float()
    scale = float(in_float32.abs().max())
    harness.assert_equal(stages.float(), in_float32, rtol=2**-6, atol=2**-7 * scale)
    harness.assert_equal(chain.run(slim), stages, rtol=0, atol=0)
    slim.library.aoti_slim_test_set_threads(2)
    harness.assert_equal(chain.run(slim), stages, rtol=0, atol=0)
    if chain.residual is not None:
        _, chain.residual = harness.among_others(chain.residual, float("nan"), others=6)
    batch, channels, *size = chain.x.shape
    chain.into = stages
    # Pairs of channels begin at even numbers only in the first of these.
    for begin, others in ((4, 8), (3, 8), (4, 7)):
        memory = torch.full((batch, *size, channels + others), torch.nan, dtype=torch.bfloat16)
        part = memory.movedim(-1, 1)[:, begin : begin + channels]
        chain.x = part.copy_(chain.x)
        harness.assert_equal(chain.run(slim), stages, rtol=0, atol=0)
    slim.library.aoti_slim_test_set_threads(1)


@pytest.mark.skipif(not amx.can_be_emulated() or amx.is_there(), reason="counts what is emulated")
def test_bfloat16_takes_amx(slim: harness.Slim) -> None:
    chain = make(**_LARGE["stride"]).in_bfloat16(residual=True, narrow=True)
    with cpu_levels.chosen(slim, 2):
        amx.emulate(slim)
        try:
            at_first = amx.emulated(slim)
            stages = dataclasses.replace(chain, packed=False).run(slim)
            before = amx.emulated(slim)
            harness.assert_equal(chain.run(slim), stages, rtol=0, atol=0)
            # Rows that two threads, or two parts of an image, read are computed twice.
            assert amx.emulated(slim) - before >= before - at_first > 0
        finally:
            amx.restore(slim)


@pytest.mark.parametrize("residual_last", [False, True])
@pytest.mark.parametrize("activation", list(Activation))
def test_activations(slim: harness.Slim, activation: int, residual_last: bool) -> None:
    chain = make(**_LARGE["stride"])
    chain.activations = [activation] * 3
    chain.residual_last = residual_last
    check(slim, chain)


def test_layouts(slim: harness.Slim) -> None:
    for part in ("x", "residual"):
        chain = make(**_LARGE["stride"])
        setattr(chain, part, getattr(chain, part).contiguous())
        check(slim, chain)
    chain = make(**_LARGE["stride"])
    chain.x = torch.randn(2, 20, 41, 70).contiguous(memory_format=torch.channels_last)
    chain.x = chain.x[:, 2:18, :40, 5:66]
    check(slim, chain)


def test_unpacked_weights(slim: harness.Slim) -> None:
    chain = make(**_LARGE["two stages"])
    expected = chain.run(slim)
    chain.packed = False
    harness.assert_equal(chain.run(slim), expected, rtol=0, atol=0)


def test_special_values(slim: harness.Slim) -> None:
    chain = make(**_LARGE["stride"])
    chain.x[0, 3, 5, 7] = torch.nan
    chain.x[1, 2, 30, 0] = torch.inf
    chain.scales = [None] * 3
    chain.residual = None
    expected, actual = chain.expected(), chain.run(slim)
    assert expected.isnan().any()
    assert torch.equal(actual.isnan(), expected.isnan())


def test_empty(slim: harness.Slim) -> None:
    chain = make(**_SMALL["small"])
    chain.x = chain.x[:0]
    chain.residual = None
    assert chain.run(slim).shape == (0, 20, 9, 10)


def test_errors(slim: harness.Slim) -> None:
    def message(**changes: Any) -> str:
        chain = dataclasses.replace(make(**_SMALL["small"]), **changes)
        with pytest.raises(harness.OpError) as e:
            chain.run(slim)
        return str(e.value)

    weights = make(**_SMALL["small"]).weights
    assert "a chain of 1 stages, must have 2 or 3" in message(
        weights=weights[:1], scales=[None], shifts=[None], activations=[0]
    )
    fewer = [weights[0], weights[1], weights[2][:, :40]]
    assert "must have 40 channels" in message(weights=fewer)
    mixed = [weights[0].bfloat16(), *weights[1:]]
    assert "input is float32, weight is bfloat16; must be the same" in message(weights=mixed)
    assert "scale must be float32 of size [48]" in message(scales=[torch.ones(47), None, None])
    assert "no activation 6" in message(activations=[0, 6, 0])
    assert "the tensor for the result must be float32, of the result's size" in message(
        into=torch.ones(2, 20, 9, 9)
    )
    assert "the residual must be float32 or bfloat16 and of the result's size" in message(
        residual=torch.ones(2, 20, 9, 9)
    )
