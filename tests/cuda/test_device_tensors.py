"""Tensors in the memory of the GPU in Python, and the caller's stream."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

X = np.linspace(-1, 1, 9, dtype=np.float32)


class Exporter:
    """An object of another library, which notes what it is asked for."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.tensor.__dlpack_device__()
        return device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, max_version=max_version)


@pytest.fixture(name="numbers")
def _numbers() -> Any:
    return importlib.import_module("tests.cuda.numbers").load()


@pytest.fixture(name="stream")
def _stream(numbers: Any) -> Iterator[int]:
    """One that the model's caller made."""
    numbers(X, 1, 1.0)
    driver = ctypes.CDLL("libcuda.so.1")
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
    assert stream.value
    yield stream.value
    assert driver.cuStreamSynchronize(stream) == 0
    assert driver.cuStreamDestroy_v2(stream) == 0
    assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0


def test_an_output_is_the_next_input(numbers: Any) -> None:
    on_device = numbers.with_options(outputs_on_device=True)
    first, _ = on_device(X, 2, 0.5)
    assert repr(first) == "Tensor(shape=(9,), dtype=float32, device=cuda:0)"
    assert first.__dlpack_device__() == (2, 0)
    exporter = Exporter(first)
    second, part = numbers(exporter, 3, 2.0)
    np.testing.assert_allclose(second, (X * 0.5 + 2) * 2 + 3, rtol=1e-6)
    np.testing.assert_allclose(part, (X * 0.5 + 2)[:3] * 3, rtol=1e-6)
    assert exporter.streams == [-1]  # the call waits for all work on the device


def test_on_the_callers_stream(numbers: Any, stream: int) -> None:
    queued = numbers.with_options(cuda_stream=stream, outputs_on_device=True)
    first, _ = queued(X, 2, 0.5)
    exporter = Exporter(first)
    second, _ = numbers.with_options(cuda_stream=stream)(exporter, 3, 2.0)
    np.testing.assert_allclose(second, (X * 0.5 + 2) * 2 + 3, rtol=1e-6)
    assert exporter.streams == [stream]
    expected = f"is computed on the stream {stream}, and is exported for that stream alone"
    for other in (None, 1, stream + 16):
        with pytest.raises(BufferError, match=expected):
            first.__dlpack__(stream=other)
    del first, second, queued


def test_it_is_no_array(numbers: Any) -> None:
    result, _ = numbers.with_options(outputs_on_device=True)(X, 2, 0.5)
    with pytest.raises(TypeError, match="the tensor is on cuda:0: convert it with from_dlpack"):
        np.asarray(result)


def test_options_of_a_session() -> None:
    decoder: Any = importlib.import_module("tests.cuda.decoder").load(device="cuda")
    session, plain = decoder.session(), decoder.session()
    on_device = session.with_options(outputs_on_device=True)
    for token in (3, 7, 1):
        (result,) = on_device(np.array([token]))
        (expected,) = plain(np.array([token]))
        assert result.__dlpack_device__() == (2, 0)
        assert result.shape == expected.shape
    # What the options' object did is in the session's state.
    np.testing.assert_array_equal(*(one(np.array([2]))[0] for one in (session, plain)))


def test_a_function_with_variants() -> None:
    """Where a tensor is chooses no variant."""
    routes: Any = importlib.import_module("tests.cuda.routes").load()
    on_device = routes.with_options(outputs_on_device=True)
    (more,) = on_device.blend(X)
    assert more.__dlpack_device__() == (2, 0)
    product, mean = routes.blend(X, more)
    np.testing.assert_allclose(product, X * (X + 1), rtol=1e-6)
    np.testing.assert_allclose(mean, X + 0.5, rtol=1e-6)
    assert routes.explain_blend(more).variant == "other_none"


def test_a_model_on_the_cpu(numbers: Any) -> None:
    decoder: Any = importlib.import_module("tests.cuda.decoder").load(device="cpu")
    result, _ = numbers.with_options(outputs_on_device=True)(X, 2, 0.5)
    with pytest.raises(ValueError, match='input "token": device is cuda:0, must be cpu'):
        decoder(result)
