"""index, index_put and nonzero, against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, REAL, make

slim = harness.load()

ALL = [*REAL, torch.complex64, torch.complex128]
MEMORY = ["plain", "transposed", "sliced", "channels_last"]


def indices_of(data: st.DataObject, shape: tuple[int, ...]) -> list[torch.Tensor | None]:
    """Index tensors that broadcast together, some missing, some a mask."""
    indices: list[torch.Tensor | None] = []
    used = 0
    masked = False
    while used < len(shape):
        kind = data.draw(
            st.sampled_from(["none", "row", "column", "scalar", "int32", "mask", "end"])
        )
        size = shape[used]
        if kind == "end":
            break
        if kind == "none" or size == 0:
            indices.append(None)
        elif kind == "mask" and not masked and not any(i is not None for i in indices):
            masked = True
            mask = torch.zeros(shape[used : used + 1], dtype=torch.bool)
            mask.view(-1)[: min(4, size)] = True
            if size < 4:
                indices.append(None)
                used += 1
                continue
            indices.append(mask)
        else:
            index = torch.randint(
                -size, size, {"row": (4,), "column": (3, 1), "scalar": ()}.get(kind, (4,))
            )
            indices.append(index.int() if kind == "int32" else index)
        used += 1
    if all(index is None for index in indices):
        indices = [torch.zeros(2, dtype=torch.int64)]
    return indices


index_shapes = st.sampled_from([(7,), (5, 13), (4, 3, 17), (4, 5, 6, 7)])


def lay_out(shape: tuple[int, ...], dtype: torch.dtype, memory: str) -> torch.Tensor:
    if memory == "channels_last":
        x = make(shape, dtype)
        return x.to(memory_format=torch.channels_last) if len(shape) == 4 else x
    return make(shape, dtype, memory)


@settings(max_examples=200)
@given(
    shape=index_shapes, dtype=st.sampled_from(ALL), memory=st.sampled_from(MEMORY), data=st.data()
)
def test_index(
    shape: tuple[int, ...], dtype: torch.dtype, memory: str, data: st.DataObject
) -> None:
    x = lay_out(shape, dtype, memory)
    indices = indices_of(data, shape)
    expected = torch.ops.aten.index.Tensor(x, indices)
    (got,) = slim.call("aoti_torch_cpu_index_Tensor", x, indices)
    harness.assert_equal(got, expected, rtol=0, atol=0, strides=expected.numel() > 1)


@settings(max_examples=200)
@given(
    shape=index_shapes,
    dtype=st.sampled_from(ALL),
    memory=st.sampled_from(MEMORY),
    accumulate=st.booleans(),
    scalar=st.booleans(),
    data=st.data(),
)
def test_index_put(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    memory: str,
    accumulate: bool,
    scalar: bool,
    data: st.DataObject,
) -> None:
    x = lay_out(shape, dtype, memory)
    indices = indices_of(data, shape)
    values = make(
        () if scalar else tuple(torch.ops.aten.index.Tensor(x, indices).shape), dtype, seed=1
    )
    expected = torch.ops.aten.index_put.default(x, indices, values, accumulate)
    (got,) = slim.call("aoti_torch_cpu_index_put", x, indices, values, accumulate)
    if not accumulate:  # which of several values wins is not specified
        hits = torch.ops.aten.index_put.default(
            torch.zeros(x.shape, dtype=torch.int64), indices, torch.tensor(1), True
        )
        got = torch.where(hits > 1, expected, got)
    harness.assert_equal(got, expected, strides=accumulate)


def test_index_by_a_mask_of_several_dims() -> None:
    x = torch.randn(4, 5, 6)
    mask = x[..., 0] > 0
    for indices in ([mask], [None, x[0] > 0], [x > 0]):
        (got,) = slim.call("aoti_torch_cpu_index_Tensor", x, indices)
        harness.assert_equal(got, torch.ops.aten.index.Tensor(x, indices), strides=True)
    (got,) = slim.call("aoti_torch_cpu_index_put", x, [x > 0], torch.tensor(7.0), False)
    harness.assert_equal(got, torch.where(x > 0, torch.tensor(7.0), x))


def test_index_of_nothing() -> None:
    for x, index in (
        (torch.zeros(3, 0), torch.tensor([1])),
        (torch.zeros(0, 3), torch.zeros(0).long()),
    ):
        (got,) = slim.call("aoti_torch_cpu_index_Tensor", x, [index])
        assert got.shape == x[index].shape


def test_index_errors() -> None:
    x = torch.zeros(3, 5)
    index = torch.tensor([0, 7])
    with pytest.raises(
        harness.OpError, match=r"index 7 is out of range -5\.\.4 for dim 1 of size 5"
    ):
        slim.call("aoti_torch_cpu_index_Tensor", x, [None, index])
    with pytest.raises(
        harness.OpError, match=r"index 7 is out of range -3\.\.2 for dim 0 of size 3"
    ):
        slim.call("aoti_torch_cpu_index_put", x, [index], torch.tensor(1.0), False)
    with pytest.raises(harness.OpError, match=r"sizes 2 and 3 of a dim can't be broadcast"):
        slim.call("aoti_torch_cpu_index_Tensor", x, [index, torch.zeros(3).long()])
    with pytest.raises(harness.OpError, match=r"indices for 3 dims, self has 2"):
        slim.call("aoti_torch_cpu_index_Tensor", x, [index, index, index])
    with pytest.raises(harness.OpError, match=r"a mask is of size 2 in dim 0, must be 3"):
        slim.call("aoti_torch_cpu_index_Tensor", x, [torch.ones(2, dtype=torch.bool)])
    with pytest.raises(harness.OpError, match=r"values are int64, must be float32"):
        slim.call("aoti_torch_cpu_index_put", x, [index], torch.tensor(1), False)
    with pytest.raises(harness.OpError, match=r"an index is float32"):
        slim.call("aoti_torch_cpu_index_Tensor", x, [x])


any_shapes = st.sampled_from([(), (1,), (0,), (7,), (5, 13), (3, 0), (2, 3, 17), (4, 1, 6)])


@settings(max_examples=150)
@given(
    shape=any_shapes,
    dtype=st.sampled_from(ALL),
    layout=st.sampled_from(LAYOUTS),
    size=st.integers(0, 9),
)
def test_nonzero(shape: tuple[int, ...], dtype: torch.dtype, layout: str, size: int) -> None:
    x = make(shape, dtype, layout)
    (got,) = slim.call("aoti_torch_cpu_nonzero", x)
    expected = torch.nonzero(x)
    harness.assert_equal(got, expected, strides=expected.numel() > 1)
    (got,) = slim.call("aoti_torch_cpu_nonzero_static", x, size, -7)
    harness.assert_equal(got, torch.nonzero_static(x, size=size, fill_value=-7))
