"""masked_select, masked_scatter and repeat_interleave, against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, REAL, make

slim = harness.load()

ALL = [*REAL, torch.complex64, torch.complex128]
any_shapes = st.sampled_from([(), (1,), (0,), (7,), (5, 13), (3, 0), (2, 3, 17), (4, 1, 6)])


@settings(max_examples=150)
@given(
    shape=any_shapes,
    dtype=st.sampled_from(ALL),
    layout=st.sampled_from(LAYOUTS),
    broadcast=st.booleans(),
)
def test_masked_select_and_masked_scatter(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, broadcast: bool
) -> None:
    x = make(shape, dtype, layout)
    mask = make(shape[1:] if broadcast else shape, torch.bool, layout, seed=1)
    (got,) = slim.call("aoti_torch_cpu_masked_select", x, mask)
    harness.assert_equal(got, torch.masked_select(x, mask), rtol=0, atol=0, strides=True)
    source = make((x.numel() + 3,), dtype, layout, seed=2)
    (got,) = slim.call("aoti_torch_cpu_masked_scatter", x, mask, source)
    harness.assert_equal(
        got, torch.masked_scatter(x, mask, source), rtol=0, atol=0, strides=x.numel() > 1
    )


def test_mask_errors() -> None:
    x = torch.zeros(5)
    with pytest.raises(harness.OpError, match="mask is true 5 times, source has only 3 elements"):
        slim.call("aoti_torch_cpu_masked_scatter", x, x == 0, x[:3])
    with pytest.raises(harness.OpError, match="mask is float32, must be bool"):
        slim.call("aoti_torch_cpu_masked_select", x, x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("repeats", [[], [0], [3], [2, 0, 5, 1]])
def test_repeat_interleave(dtype: torch.dtype, repeats: list[int]) -> None:
    counts = torch.tensor(repeats, dtype=dtype)
    for size in (None, sum(repeats)):
        (got,) = slim.call("aoti_torch_cpu_repeat_interleave_Tensor", counts, size)
        harness.assert_equal(got, torch.repeat_interleave(counts))
    with pytest.raises(harness.OpError, match="must be the sum of repeats"):
        slim.call("aoti_torch_cpu_repeat_interleave_Tensor", counts, 100)
    with pytest.raises(harness.OpError, match=r"repeats\[0\] is -1, must not be negative"):
        slim.call("aoti_torch_cpu_repeat_interleave_Tensor", torch.tensor([-1], dtype=dtype), None)
