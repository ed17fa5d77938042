"""The bytes of packed tensors in the weights file."""

from __future__ import annotations

import pytest
import torch
from aoti_driver.packing import convolution, matmul, packed_format
from aoti_driver.program.weights_file import raw_bytes


@pytest.mark.parametrize("shape", [(1, 1), (16, 3), (17, 64), (48, 32), (100, 7), (3, 17, 5)])
@pytest.mark.parametrize("kind", ["gemm_f32", "gemm_f32_rows"])
def test_size_of_matrices(kind: str, shape: tuple[int, ...]) -> None:
    data = matmul.pack(kind, torch.randn(shape))
    assert packed_format.layout_size(kind, shape, {}) == -(-len(data) // 64) * 64


@pytest.mark.parametrize(
    ("kind", "shape", "groups"),
    [
        ("conv_f32", (8, 3, 3, 3), 1),
        ("conv_f32", (66, 5, 2, 3), 2),
        ("conv_f32", (64, 16, 3), 4),
        ("conv_transposed_f32", (6, 40, 3, 2), 1),
        ("conv_transposed_f32", (6, 5, 3), 2),
        ("conv_depthwise_f32", (8, 1, 3, 3), 8),
        ("conv_depthwise_f32", (40, 2, 2, 2, 2), 20),
    ],
)
def test_size_of_convolutions(kind: str, shape: tuple[int, ...], groups: int) -> None:
    data = convolution.pack(kind, torch.randn(shape), groups=groups)
    assert packed_format.layout_size(kind, shape, {"groups": groups}) == len(data)


@pytest.mark.parametrize("kind", ["conv_bf16", "conv_transposed_bf16"])
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((8, 4, 3, 3), 1), ((68, 6, 2, 3), 2), ((64, 16, 3), 4), ((33, 5, 2, 2), 1)],
)
def test_size_of_convolutions_in_bfloat16(kind: str, shape: tuple[int, ...], groups: int) -> None:
    data = convolution.pack(kind, torch.randn(shape).bfloat16(), groups=groups)
    assert packed_format.layout_size(kind, shape, {"groups": groups}) == len(data)


def test_pairs_of_input_channels() -> None:
    weight = torch.arange(2 * 6 * 4 * 3).reshape(12, 4, 3).bfloat16()
    packed = convolution.pack("conv_bf16", weight, groups=2).view(torch.bfloat16)
    # group, block, tap, pair, lane, channel of the pair
    blocks = packed.view(2, 1, 3, 2, 32, 2)
    for group, tap, channel, output in ((0, 0, 0, 0), (0, 2, 3, 5), (1, 1, 2, 4)):
        found = blocks[group, 0, tap, channel // 2, output, channel % 2]
        assert found == weight[6 * group + output, channel, tap]
    assert not blocks[..., 6:, :].any()


def test_an_odd_number_of_input_channels() -> None:
    weight = torch.arange(1.0, 1 + 6 * 3 * 2).reshape(6, 3, 2).bfloat16()
    packed = convolution.pack("conv_bf16", weight, groups=1).view(torch.bfloat16)
    assert torch.equal(packed.view(2, 2, 32, 2)[1, 1, :6, 0], weight[:, 2, 1])
    assert not packed.view(2, 2, 32, 2)[:, 1, :, 1].any()
    transposed = convolution.pack("conv_transposed_bf16", weight.transpose(0, 1), groups=1)
    assert torch.equal(transposed.view(torch.bfloat16), packed)


@pytest.mark.parametrize(
    ("weight", "groups"),
    [
        (torch.ones(8, 3, 1).bfloat16(), 2),
        (torch.ones(8, 1, 1).bfloat16(), 1),
        (torch.ones(8, 4, 1), 1),
    ],
)
def test_weights_without_pairs(weight: torch.Tensor, groups: int) -> None:
    with pytest.raises(ValueError, match="bfloat16 with an even number of input channels"):
        convolution.pack("conv_bf16", weight, groups=groups)
    assert convolution.kind_of(weight, groups, transposed=False) == "conv_f32"


def test_size_of_an_unknown_layout() -> None:
    with pytest.raises(ValueError, match="no layout 'conv_f16'"):
        packed_format.layout_size("conv_f16", (1, 1, 1), {"groups": 1})


def test_digest() -> None:
    data = bytearray(range(100))
    # The same number as in DigestDependsOnBytesAndTheirPositions of runtime/tests/model_test.cc.
    assert packed_format.digest(memoryview(data)) == 0x988B713EF8BB8C1D
    assert packed_format.digest(memoryview(b"")) == 0


def test_digest_of_more_than_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    data = raw_bytes(torch.randn(1001))[:-3]
    whole = packed_format.digest(data)
    monkeypatch.setattr(packed_format, "_CHUNK", 7)
    assert packed_format.digest(data) == whole


def test_what_follows_the_layout() -> None:
    plain, layout = memoryview(b"12345678"), memoryview(bytes(64))
    about = packed_format.about("w#gemm_f32", plain, layout)
    assert len(about) == 64
    assert about[:8] == b"aotipack"
    digests = [packed_format.digest(memoryview(d)) for d in (b"w#gemm_f32", plain, layout)]
    assert about[8:32] == b"".join(digest.to_bytes(8, "little") for digest in digests)
    assert not any(about[32:])
