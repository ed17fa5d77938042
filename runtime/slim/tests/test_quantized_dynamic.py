"""_dyn_quant_matmul_4bit and the packing of its weights, against PyTorch."""

from __future__ import annotations

import pytest
import torch
from harness import OpError, assert_equal, load
from torch import Tensor

slim = load()
PACK = "aoti_torch_cpu__dyn_quant_pack_4bit_weight"
MATMUL = "aoti_torch_cpu__dyn_quant_matmul_4bit"

pytestmark = pytest.mark.skipif(
    torch.backends.kleidiai.is_available(),  # type: ignore[no-untyped-call]
    reason="this CPU's PyTorch has another layout",
)


def weights(n: int, k: int, group: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    scales = (torch.rand(n, k // group) / 8 + 0.01).to(dtype)
    return torch.randint(0, 256, (n, k // 2), dtype=torch.uint8), scales


@pytest.mark.parametrize("scale", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("biased", [False, True])
def test_packing(scale: torch.dtype, biased: bool) -> None:
    own, scales = weights(6, 64, 32, scale)
    bias = torch.randn(6) if biased else None
    expected = torch.ops.aten._dyn_quant_pack_4bit_weight(own, scales, bias, 32, 64, 6)
    wide = torch.zeros(6, 64, dtype=torch.uint8)
    wide[:, ::2] = own
    for x in (own, wide[:, ::2]):
        assert_equal(slim.call(PACK, x, scales, bias, 32, 64, 6)[0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize(("n", "k", "group"), [(6, 64, 32), (6, 64, 64), (49, 96, 96), (1, 34, 34)])
@pytest.mark.parametrize("biased", [False, True])
def test_products(dtype: torch.dtype, rows: int, n: int, k: int, group: int, biased: bool) -> None:
    if dtype == torch.bfloat16 and group != k:
        pytest.skip("PyTorch takes bfloat16 with one group only")
    own, scales = weights(n, k, group, torch.float32)
    bias = torch.randn(n) if biased else None
    packed = torch.ops.aten._dyn_quant_pack_4bit_weight(own, scales, bias, group, k, n)
    x = torch.randn(rows, k).to(dtype)
    if rows > 2:
        x[0], x[1] = 0, x[1].abs()
    # PyTorch's operator reads activations without their strides; x is contiguous.
    expected = torch.ops.aten._dyn_quant_matmul_4bit(x, packed, group, k, n)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    wide = torch.zeros(rows, 2 * k, dtype=dtype)
    wide[:, ::2] = x
    for own_x in (x, wide[:, ::2], x.mT.contiguous().mT):
        (actual,) = slim.call(MATMUL, own_x, packed, group, k, n)
        assert_equal(actual, expected, rtol=tolerance, atol=4 * tolerance, strides=True)


def test_errors() -> None:
    own, scales = weights(6, 64, 32, torch.float32)
    for message, arguments in {
        "the weight is int8, must be uint8": (own.view(torch.int8), scales, None, 32, 64, 6),
        "180 bytes and 12 scales, must be 192 (two values in a byte) and 12": (
            own.flatten()[:180], scales, None, 32, 64, 6,
        ),
        "the bias must have 6 elements": (own, scales, torch.ones(5), 32, 64, 6),
        "groups of 48, must be a multiple of 32 that divides in_features, 64, or in_features "
        "itself": (own, scales, None, 48, 64, 6),
        "33 in_features and 6 out_features: in_features must be a positive even number": (
            own, scales, None, 33, 33, 6,
        ),
    }.items():  # fmt: skip
        with pytest.raises(OpError) as error:
            slim.call(PACK, *arguments)
        assert str(error.value) == f"_dyn_quant_pack_4bit_weight: {message}"
    x, packed = torch.ones(2, 64), slim.call(PACK, own, scales, None, 32, 64, 6)[0]
    for message, activations, weight in [
        ("takes float32, or bfloat16 with one group, not bfloat16 with groups of 32",
         x.bfloat16(), packed),
        ("the activations must have 2 dims, of which the second one has size 64", x[0], packed),
        ("the packed weights are uint8, must be float32: pack them where KleidiAI is not available",
         x, packed.to(torch.uint8)),
        ("the packed weights have 203 elements, must have 204, or 210 with a bias", x, packed[1:]),
    ]:  # fmt: skip
        with pytest.raises(OpError) as error:
            slim.call(MATMUL, activations, weight, 32, 64, 6)
        assert str(error.value) == f"_dyn_quant_matmul_4bit: {message}"
