"""Distances and _trilinear, against PyTorch."""

from __future__ import annotations

import harness
import pytest
import torch

_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-6}


@pytest.fixture(scope="module")
def slim() -> harness.Slim:
    return harness.load()


def close(actual: torch.Tensor, expected: torch.Tensor, *, strides: bool = True) -> None:
    tolerance = _TOLERANCE[expected.dtype]
    harness.assert_equal(actual, expected, rtol=tolerance, atol=tolerance, strides=strides)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances(slim: harness.Slim, p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for left, right in (
        ([5, 7], [6, 7]),
        ([2, 1, 5, 7], [3, 6, 7]),
        ([31, 3], [40, 3]),
        ([0, 3], [4, 3]),
        ([4, 0], [3, 0]),
        ([2, 4, 3], [2, 0, 3]),
    ):
        a = torch.randint(-3, 4, left).to(dtype)
        b = torch.randn(list(reversed(right)), dtype=dtype).permute(*reversed(range(len(right))))
        expected = torch.ops.aten._cdist_forward(a, b, p, 2)
        (actual,) = slim.call("aoti_torch_cpu__cdist_forward", a, b, p, 2)
        close(actual, expected)
    for shape in ([6, 5], [1, 5], [0, 5], [3, 0]):
        rows = torch.randint(-3, 4, shape).to(dtype)
        expected = torch.ops.aten._pdist_forward(rows, p)
        (actual,) = slim.call("aoti_torch_cpu__pdist_forward", rows, p)
        close(actual, expected)


def test_distances_errors(slim: harness.Slim) -> None:
    name = "aoti_torch_cpu__cdist_forward"
    with pytest.raises(harness.OpError, match="p is -1"):
        slim.call(name, torch.ones(2, 3), torch.ones(2, 3), -1.0, None)
    with pytest.raises(harness.OpError, match="have 3 and 4 numbers"):
        slim.call(name, torch.ones(2, 3), torch.ones(2, 4), 2.0, None)
    with pytest.raises(harness.OpError, match="batches of 2 and 3"):
        slim.call(name, torch.ones(2, 2, 3), torch.ones(3, 2, 3), 2.0, None)
    with pytest.raises(harness.OpError, match="float16 is not supported"):
        slim.call("aoti_torch_cpu__pdist_forward", torch.ones(2, 2).half(), 2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_trilinear(slim: harness.Slim, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, w, b = torch.randn(5, 7), torch.randn(4, 7, 3), torch.randn(3, 5).t()
    for tensors, arguments in (
        ((a, w, b), ([1, 3], [0], [1, 2], [2, 3], 1)),
        ((a[:0], w, b[:0]), ([1, 3], [0], [1, 2], [2, 3], 1)),
        ((a, a, a), ([], [], [], [1], 0)),
        ((a, a[0], a), ([2], [0, 2], [2], [2], 0)),
    ):
        given = [tensor.to(dtype) for tensor in tensors]
        expected = torch.ops.aten._trilinear(*(t.double() for t in given), *arguments)
        (actual,) = slim.call("aoti_torch_cpu__trilinear", *given, *arguments)
        close(actual, expected.to(dtype))


def test_trilinear_errors(slim: harness.Slim) -> None:
    name, x = "aoti_torch_cpu__trilinear", torch.ones(2, 3)
    with pytest.raises(harness.OpError, match="different numbers of dims"):
        slim.call(name, x, x, x, [0], [], [], [1], 0)
    with pytest.raises(harness.OpError, match="dim 2 is out of range"):
        slim.call(name, x, x, x, [], [], [], [2], 0)
    with pytest.raises(harness.OpError, match="can't be broadcast to each other"):
        slim.call(name, x, x.t(), x, [], [], [], [1], 0)
