"""Tensors of more than 2^31 bytes, and of more than 2^31 elements: no size or offset is an int32.

Values have a prime period, so that an offset that lost its upper bits reads another value. If
PyTorch's result would take long, a part of it is computed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import harness
import pytest
import torch

slim = harness.load()

MANY = 2**31 + 1001  # elements
ROWS, COLUMNS = 530_003, 1024  # of float32: 2.2e9 bytes
END = [0, 1, 2**31 - 1, 2**31, MANY - 1, -1, -MANY]


@pytest.fixture(autouse=True)
def one_at_a_time() -> Iterator[None]:
    yield
    gc.collect()


def many_bytes() -> torch.Tensor:
    return torch.arange(251, dtype=torch.uint8).repeat(MANY // 251 + 1)[:MANY]


def many_rows() -> torch.Tensor:
    period = torch.randn(1009, COLUMNS)
    return period.repeat(ROWS // 1009 + 1, 1)[:ROWS]


def test_copy() -> None:
    x = many_bytes()
    y = torch.zeros_like(x)
    slim.call("aoti_torch_copy_", y, x, 0)
    assert torch.equal(x, y)


def test_copy_between_types() -> None:
    x = many_bytes()
    y = torch.zeros(MANY, dtype=torch.bool)
    slim.call("aoti_torch_copy_", y, x, 0)
    assert torch.equal(x.view(torch.int8) != 0, y)


def test_transposed_copy() -> None:
    x = many_rows()
    y = torch.empty(COLUMNS, ROWS)
    slim.call("aoti_torch_copy_", y, x.t(), 0)
    assert torch.equal(y[:, -3000:], x[-3000:].t())
    assert torch.equal(y[-3:], x[:, -3:].t())


def test_cat() -> None:
    x = many_bytes()
    left, right = x[:1_234_567_890], x[1_234_567_890:]
    (y,) = slim.call("aoti_torch_cpu_cat", [left, right], 0)
    assert torch.equal(x, y)


def test_view_beyond() -> None:
    x = many_bytes()
    (y,) = slim.call("aoti_torch_cpu_narrow", x, 0, 2**31 + 1, 1000)
    assert torch.equal(y, x[2**31 + 1 :])


def test_index() -> None:
    x, index = many_bytes(), torch.tensor(END)
    (y,) = slim.call("aoti_torch_cpu_index_Tensor", x, [index])
    assert torch.equal(y, x[index])


def test_index_out_of_range() -> None:
    x = torch.zeros(MANY, dtype=torch.uint8)
    with pytest.raises(harness.OpError, match=str(MANY)):
        slim.call("aoti_torch_cpu_index_Tensor", x, [torch.tensor([MANY])])


def test_index_rows() -> None:
    x, index = many_rows(), torch.tensor([0, ROWS - 1, 524_289, -2])
    (y,) = slim.call("aoti_torch_cpu_index_Tensor", x, [index])
    assert torch.equal(y, x[index])


def test_index_put() -> None:
    x, index = many_bytes(), torch.tensor(END[:5])
    values = torch.tensor([251, 252, 253, 254, 255], dtype=torch.uint8)
    (y,) = slim.call("aoti_torch_cpu_index_put", x, [index], values, 0)
    x[index] = values
    assert torch.equal(x, y)


def test_nonzero() -> None:
    x = torch.zeros(MANY, dtype=torch.bool)
    x[END[:5]] = True
    (y,) = slim.call("aoti_torch_cpu_nonzero", x)
    assert y.flatten().tolist() == END[:5]


def test_topk_along_many() -> None:
    x = torch.zeros(MANY, dtype=torch.uint8)
    x[2**31 + 5], x[2**31 - 1], x[7] = 9, 8, 7
    values, indices = slim.call("aoti_torch_cpu_topk", x, 3, 0, 1, 1)
    assert values.tolist() == [9, 8, 7]
    assert indices.tolist() == [2**31 + 5, 2**31 - 1, 7]


def test_mm_with_a_large_weight() -> None:
    weight, x = many_rows(), torch.randn(2, COLUMNS)
    y = torch.empty(2, ROWS)
    slim.call("aoti_torch_cpu_mm_out", y, x, weight.t())
    torch.testing.assert_close(y[:, :2000], x @ weight[:2000].t(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(y[:, -2000:], x @ weight[-2000:].t(), rtol=1e-4, atol=1e-4)


def test_mm_along_many() -> None:
    x, y = many_rows(), torch.randn(2, ROWS)
    out = torch.empty(2, COLUMNS)
    slim.call("aoti_torch_cpu_mm_out", out, y, x)
    torch.testing.assert_close(out, y @ x, rtol=1e-3, atol=0.05)


def test_attention_with_a_large_cache() -> None:
    x = many_rows().view(1, 1, -1)[:, :, : 8 * 1_060_000 * 64].view(1, 8, 1_060_000, 64)
    query = torch.randn(1, 8, 1, 64)
    output, _ = slim.call(
        "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu",
        query, x, x, 0.0, 0, None, None,
    )  # fmt: skip
    expected = torch.nn.functional.scaled_dot_product_attention(query, x, x)
    torch.testing.assert_close(output, expected, rtol=1e-3, atol=1e-4)


def test_convolution() -> None:
    x = many_rows().view(1, 1, -1)
    weight, bias = torch.randn(1, 1, 3), torch.randn(1)
    (y,) = slim.call("aoti_torch_cpu_convolution", x, weight, bias, [1], [1], [1], 0, [0], 1)
    assert y.shape == x.shape
    for part in (slice(0, 1000), slice(-1000, None)):
        expected = torch.nn.functional.conv1d(x[..., part], weight, bias, padding=1)
        inner = slice(1, -1)
        torch.testing.assert_close(y[..., part][..., inner], expected[..., inner])


def test_a_result_larger_than_memory() -> None:
    x = torch.zeros(1).expand(2**40, 2**18)
    with pytest.raises(harness.OpError, match=r"(?i)memory|bad_alloc|size"):
        slim.call("aoti_torch_cpu_cumsum", x, 0, None)
