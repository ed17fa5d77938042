"""The Python modules of Triton kernels: tensors on the GPU, addresses, and what is refused."""

from __future__ import annotations

import copy
import ctypes
import importlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

X = np.linspace(-1, 1, 9, dtype=np.float32)
LABEL = "//tests/cuda:shifted: "
CALL = r"; the call is shifted\(grid, x, y, n, low, high, by, \*, stream=0\)$"


class Gpu:
    """Memory and streams of the GPU, from the driver."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.check(self.driver.cuInit(0))
        self.check(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0))
        self.check(self.driver.cuCtxPushCurrent_v2(self.context))
        self.addresses: list[int] = []

    def check(self, code: int) -> None:
        assert code == 0

    def memory(self, values: np.ndarray[Any, Any]) -> int:
        address = ctypes.c_uint64()
        self.check(self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(values.nbytes)))
        data = ctypes.c_void_p(values.ctypes.data)
        self.check(self.driver.cuMemcpyHtoD_v2(address, data, ctypes.c_size_t(values.nbytes)))
        self.addresses.append(address.value)
        return address.value

    def read(self, address: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        values = np.empty_like(like)
        data = ctypes.c_void_p(values.ctypes.data)
        self.check(self.driver.cuCtxSynchronize())
        self.check(
            self.driver.cuMemcpyDtoH_v2(
                data, ctypes.c_uint64(address), ctypes.c_size_t(values.nbytes)
            )
        )
        return values

    def close(self) -> None:
        for address in self.addresses:
            self.check(self.driver.cuMemFree_v2(ctypes.c_uint64(address)))
        self.check(self.driver.cuCtxPopCurrent_v2(ctypes.byref(self.context)))
        self.check(self.driver.cuDevicePrimaryCtxRelease_v2(0))


class Exporter:
    """A tensor of another library, which notes the streams that it is exported for."""

    def __init__(self, tensor: Any, device: Any = None, error: Exception | None = None) -> None:
        self.tensor = tensor
        self.device = device
        self.error = error
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> Any:
        return self.device or self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        if self.error:
            raise self.error
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, max_version=max_version)


@pytest.fixture(name="gpu")
def _gpu() -> Iterator[Gpu]:
    gpu = Gpu()
    yield gpu
    gpu.close()


def module() -> Any:
    return importlib.import_module("tests.cuda.shifted")


@pytest.fixture(name="shifted")
def _shifted() -> Any:
    return module().load()


def on_gpu(cuda_device: int = 0) -> Any:
    """X, in a tensor that an output of a model is."""
    model = importlib.import_module("tests.cuda.numbers").load(cuda_device=cuda_device)
    result, _ = model.with_options(outputs_on_device=True)(X - 1, 1, 1.0)
    return result


def test_tensors_and_addresses(shifted: Any, gpu: Gpu) -> None:
    y = gpu.memory(np.zeros_like(X))
    exporter = Exporter(on_gpu())
    assert shifted((3,), exporter, y, 9, -128, 2**64 - 1, 0.5) is None
    np.testing.assert_allclose(gpu.read(y, X), X + 0.5 - 128 + 15, rtol=1e-6)
    assert exporter.streams == [1]  # the legacy default stream
    # By name, in any order; x is an address too, and the result is read and written in place.
    shifted(by=np.float32(1), grid=(3, 1, 1), x=y, y=y, low=0, high=0, n=np.int64(2))
    expected = np.concatenate([X[:2] + 1, X[2:]]) + 0.5 - 128 + 15
    np.testing.assert_allclose(gpu.read(y, X), expected, rtol=1e-6)


def test_a_tensor_is_written(shifted: Any) -> None:
    tensor = on_gpu()
    shifted((3,), tensor, tensor, 9, 1, 0, 0.0)
    result, _ = importlib.import_module("tests.cuda.numbers").load()(tensor, 1, 1.0)
    np.testing.assert_allclose(result, X + 2, rtol=1e-6)


def test_the_callers_stream(shifted: Any, gpu: Gpu) -> None:
    stream = ctypes.c_void_p()
    gpu.check(gpu.driver.cuStreamCreate(ctypes.byref(stream), 0))
    assert stream.value
    exporter, y = Exporter(on_gpu()), gpu.memory(np.zeros_like(X))
    shifted((3,), exporter, y, 9, 0, 0, 2.0, stream=stream.value)
    assert exporter.streams == [stream.value]
    np.testing.assert_allclose(gpu.read(y, X), X + 2, rtol=1e-6)
    gpu.check(gpu.driver.cuStreamDestroy_v2(stream))


def test_a_grid_of_the_target(gpu: Gpu) -> None:
    kernel = importlib.import_module("tests.cuda.masked_scale").load()
    values = np.arange(80, dtype=np.float64).reshape(2, 40)
    x, y = gpu.memory(values), gpu.memory(np.zeros_like(values))
    kept = gpu.memory(values % 3 != 0)
    kernel(x, kept, y, rows=2, columns=40, factor=0.1, negate=True)
    np.testing.assert_array_equal(
        gpu.read(y, values), np.where(values % 3 != 0, -(values * 0.1), 0)
    )
    error = importlib.import_module("tests.cuda.masked_scale").InputError
    with pytest.raises(error, match=r"masked_scale: grid\[1\] of these arguments is -1; it must"):
        kernel(x, kept, y, -1, 40, 0.1, False)


def test_what_a_module_tells() -> None:
    assert list(module().signature.items()) == [
        ("x", "const float32*"),
        ("y", "float32*"),
        ("n", "int32"),
        ("low", "int8"),
        ("high", "uint64"),
        ("by", "float32"),
    ]
    assert module().__doc__ == "The Triton kernel //tests/cuda:shifted."
    assert repr(module().load(cuda_device=0)) == "Kernel(//tests/cuda:shifted, device=cuda:0)"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (((1,), 0, 0, 0, 0, 0), {}, 'the argument "by" is missing'),
        ((), {"x": 0}, 'the argument "grid" is missing'),
        (((1,), 0, 0, 0, 0, 0, 0.0, 7), {}, "got 8 positional arguments, must be at most 7"),
        (((1,), 0), {"x": 0}, 'the argument "x" is given twice'),
        (((1,), 0), {"block": 64}, 'there is no argument "block"'),
    ],
)
def test_wrong_calls(shifted: Any, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{LABEL}{message}{CALL}"):
        shifted(*args, **kwargs)


GOOD = {"grid": (0,), "x": 0, "y": 0, "n": 0, "low": 0, "high": 0, "by": 0.0}


@pytest.mark.parametrize(
    ("changed", "message", "code"),
    [
        ({"grid": 8}, "got 8, must be a tuple of one to three ints in 0..2147483647", "Invalid"),
        ({"grid": (1, 1, 1, 1)}, r"got \(1, 1, 1, 1\), must be a tuple of one to", "Invalid"),
        ({"grid": (-1,)}, r"got \(-1,\), must be a tuple of one to three ints", "Invalid"),
        ({"x": X}, "device is cpu, must be cuda:0, where the kernel is loaded", "WrongDevice"),
        ({"x": Exporter(X)}, "device is cpu, must be cuda:0, where the", "WrongDevice"),
        ({"x": Exporter(X, device=(10, 0))}, "device is rocm:0, must be cpu or", "WrongDevice"),
        ({"x": [1.0]}, r"got list, must be a tensor on cuda:0, an object with __dl", "Invalid"),
        ({"x": True}, r"got bool, must be a tensor on cuda:0, an object with __dl", "Invalid"),
        ({"x": -1}, "value is -1, which does not fit into an address", "ValueOutOfRange"),
        (
            {"x": Exporter(X, device=(2, 0), error=BufferError("it requires a gradient"))},
            r"Exporter: __dlpack__\(\) raised BufferError: it requires a gradient",
            "InvalidArgument",
        ),
        ({"n": 2**31}, "value is 2147483648, which does not fit into int32", "ValueOutOfRange"),
        ({"low": -129}, "value is -129, which does not fit into int8", "ValueOutOfRange"),
        ({"high": -1}, "value is -1, which does not fit into uint64", "ValueOutOfRange"),
        ({"high": 2**64}, "value is 184467.*, which does not fit into uint64", "ValueOutOfRange"),
        ({"n": 1.5}, "got float, must be an int", "InvalidArgument"),
        ({"by": "1"}, "got str, must be a float", "InvalidArgument"),
        (
            {"stream": object()},
            "got object, must be the address of a cudaStream_t, such as torch.cuda.current_",
            "InvalidArgument",
        ),
    ],
)
def test_wrong_arguments(shifted: Any, changed: dict[str, Any], message: str, code: str) -> None:
    (name,) = changed
    with pytest.raises(module().InputError, match=f'^{LABEL}argument "{name}": {message}') as e:
        shifted(**{**GOOD, **changed})
    assert e.value.code.startswith(code)
    assert isinstance(e.value, ValueError)


def test_a_wrong_dtype(gpu: Gpu) -> None:
    kernel = importlib.import_module("tests.cuda.masked_scale").load()
    with pytest.raises(ValueError, match=r'argument "x": dtype is float32, must be float64$'):
        kernel(on_gpu(), 0, 0, 0, 0, 0.0, False)
    with pytest.raises(ValueError, match=r'argument "negate": got int, must be a bool$'):
        kernel(0, 0, 0, 0, 0, 0.0, 1)
    del gpu


def test_another_gpu(shifted: Any, gpu: Gpu) -> None:
    count = ctypes.c_int()
    gpu.check(gpu.driver.cuDeviceGetCount(ctypes.byref(count)))
    expected = f"^{LABEL}cuda_device is 99, but this machine has {count.value} CUDA device"
    with pytest.raises(module().Error, match=expected):
        module().load(cuda_device=99)
    if count.value < 2:
        pytest.skip("the machine has one GPU")
    far = on_gpu(cuda_device=1)
    expected = (
        f'^{LABEL}argument "x": device is cuda:1, must be cuda:0, where the kernel is loaded$'
    )
    with pytest.raises(module().InputError, match=expected):
        shifted((3,), far, far, 9, 0, 0, 0.0)


def test_it_comes_from_load_alone(shifted: Any) -> None:
    kind = type(shifted)
    for make in (kind, lambda: copy.copy(shifted), lambda: pickle.dumps(shifted)):
        with pytest.raises(TypeError, match=r"kernel|Kernel"):
            make()
