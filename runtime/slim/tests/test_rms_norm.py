"""_fused_rms_norm against PyTorch."""

from __future__ import annotations

import pytest
import torch
from harness import OpError, assert_equal, load

slim = load()
NAME = "aoti_torch_cpu__fused_rms_norm"
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-13, torch.bfloat16: 8e-3, torch.float16: 1e-3}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("weighted", [False, True])
def test_like_pytorch(dtype: torch.dtype, eps: float | None, weighted: bool) -> None:
    plain = torch.randn(3, 5, 16)
    for x in (plain, plain.transpose(0, 1), plain.transpose(1, 2), plain[:, ::2], plain[0, 0]):
        for dims in range(1, x.dim() + 1):
            x = (x * 0.01).to(dtype)
            shape = list(x.shape[-dims:])
            weight = torch.randn(shape).to(dtype) if weighted else None
            expected = torch.ops.aten._fused_rms_norm(x, shape, weight, eps)
            tolerance = TOLERANCE[dtype]
            actual = slim.call(NAME, x, shape, weight, eps)
            for own, theirs in zip(actual, expected, strict=True):
                assert_equal(own, theirs, rtol=tolerance, atol=tolerance, strides=True)


def test_empty() -> None:
    output, scale = slim.call(NAME, torch.zeros(0, 4), [4], None, None)
    assert output.shape == (0, 4) and scale.shape == (0, 1)


def test_errors() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(OpError, match="last dims"):
        slim.call(NAME, x, [2], None, None)
    with pytest.raises(OpError, match="the weight must have the normalized shape"):
        slim.call(NAME, x, [3], torch.ones(2), None)
    with pytest.raises(OpError, match="not supported here, must be a floating-point one"):
        slim.call(NAME, x.int(), [3], None, None)
