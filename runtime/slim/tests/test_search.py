"""searchsorted, bucketize and histc, against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import REAL, make

slim = harness.load()


@settings(max_examples=150)
@given(
    rows=st.sampled_from([None, 1, 3]),
    size=st.sampled_from([0, 1, 2, 7, 100]),
    dtype=st.sampled_from(REAL[:-1]),
    layout=st.sampled_from(["plain", "transposed", "sliced"]),
    right=st.booleans(),
    int32=st.booleans(),
    use_sorter=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:.*non-contiguous")
def test_searchsorted_and_bucketize(
    rows: int | None,
    size: int,
    dtype: torch.dtype,
    layout: str,
    right: bool,
    int32: bool,
    use_sorter: bool,
) -> None:
    shape = (size,) if rows is None else (rows, size)
    sequence = make(shape, dtype)
    order = sequence.argsort(dim=-1)
    sequence = sequence if use_sorter else sequence.gather(-1, order)
    sorter = order if use_sorter else None
    values = make((3, 5) if rows is None else (rows, 5), dtype, layout, seed=1)
    (got,) = slim.call(
        "aoti_torch_cpu_searchsorted_Tensor", sequence, values, int32, right, None, sorter
    )
    expected = torch.searchsorted(sequence, values, out_int32=int32, right=right, sorter=sorter)
    harness.assert_equal(got, expected, strides=True)
    if rows is None:
        (got,) = slim.call(
            "aoti_torch_cpu_searchsorted_Scalar", sequence, 1.0, int32, right, None, sorter
        )
        harness.assert_equal(
            got, torch.searchsorted(sequence, 1.0, out_int32=int32, right=right, sorter=sorter)
        )
        if not use_sorter:
            (got,) = slim.call("aoti_torch_cpu_bucketize_Tensor", values, sequence, int32, right)
            harness.assert_equal(
                got, torch.bucketize(values, sequence, out_int32=int32, right=right)
            )


def test_searchsorted_errors() -> None:
    x = torch.arange(4.0)
    with pytest.raises(harness.OpError, match=r"index 9 is out of range 0\.\.3"):
        slim.call(
            "aoti_torch_cpu_searchsorted_Tensor",
            x,
            x,
            False,
            False,
            None,
            torch.tensor([0, 1, 2, 9]),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (-1.0, 1.5)])
@pytest.mark.parametrize("bins", [1, 7, 100])
def test_histc(dtype: torch.dtype, low: float, high: float, bins: int) -> None:
    x = torch.randn(50, 7, dtype=dtype).t()
    (got,) = slim.call("aoti_torch_cpu_histc", x, bins, low, high)
    harness.assert_equal(got, torch.histc(x, bins, low, high))
    with pytest.raises(harness.OpError, match="not finite"):
        slim.call("aoti_torch_cpu_histc", torch.tensor([1.0, float("nan")]), bins, 0.0, 0.0)
