"""Python modules of models, over fake programs: their inputs, outputs and errors."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.tests.fake_modules import load_module, write_weights

adder = load_module("fake_adder")
counter = load_module("fake_counter")
echo = load_module("fake_echo")


@pytest.fixture
def add(tmp_path: Path) -> Any:
    return adder.load(write_weights(tmp_path / "w", {"bias": [10, 20]}))


@pytest.fixture
def count(tmp_path: Path) -> Any:
    weights = write_weights(tmp_path / "w", {"count": [5], "total": [50]})
    return counter.load(weights=str(weights))


def test_signature() -> None:
    assert adder.__doc__ == "A fake.\n"
    assert adder.inputs == {"x": "float32[batch, 2]"}
    assert adder.outputs == {"y": "float32[batch, 2]", "x_transposed": "float32[2, batch]"}
    assert adder.dims == {"batch": (1, 64)}
    assert adder.Outputs._fields == ("y", "x_transposed")


def test_numpy(add: Any) -> None:
    x = np.array([[1, 2], [3, 4]], np.float32)
    x.flags.writeable = False
    out = add(x)
    assert out.y.tolist() == [[11, 22], [13, 24]]
    assert out.y.dtype == np.float32 and out.y.flags.writeable
    assert out.x_transposed.tolist() == [[1, 3], [2, 4]]
    y, transposed = add(x=x[::-1])
    assert y.tolist() == [[13, 24], [11, 22]]
    assert transposed.flags.c_contiguous


def test_outputs_outlive_the_model(add: Any) -> None:
    y = add(np.zeros((1, 2), np.float32)).y
    del add
    gc.collect()
    assert y.tolist() == [[10, 20]]


def test_buffers(add: Any) -> None:
    memory = memoryview(np.array([[1, 2]], np.float32).tobytes()).cast("f", (1, 2))
    assert add(memory).y.tolist() == [[11, 22]]


class DLPackOnly:
    """Like a tensor of another library, without a buffer."""

    def __init__(self, array: Any, *, old: bool = False) -> None:
        self.array, self.old = array, old

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.old and kwargs:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("old", [False, True])
def test_dlpack(add: Any, old: bool) -> None:
    x = DLPackOnly(np.array([[1, 3], [2, 4]], np.float32).T, old=old)
    assert add(x).y.tolist() == [[11, 22], [13, 24]]
    before = sys.getrefcount(x.array)
    for _ in range(10):
        add(x)
    after = sys.getrefcount(x.array)
    assert after == before


def test_dlpack_on_another_device(add: Any) -> None:
    class OnGpu(DLPackOnly):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 1)

    with pytest.raises(adder.InputError) as caught:
        add(OnGpu(np.zeros((1, 2), np.float32)))
    assert str(caught.value) == 'adder: input "x": device is cuda:1, must be cpu'
    assert caught.value.code == "WrongDevice"


def test_state_and_mutated_inputs(count: Any) -> None:
    cache = np.zeros(1, np.float32)
    assert [count(cache).count[0] for _ in range(3)] == [6, 7, 8]
    assert cache.tolist() == [300]


def test_mutated_inputs_must_be_writable_and_contiguous(count: Any) -> None:
    cache = np.zeros(1, np.float32)
    cache.flags.writeable = False
    with pytest.raises(counter.InputError) as caught:
        count(cache)
    assert str(caught.value) == (
        'counter: input "cache": memory is read-only, but the model writes to it'
    )
    assert caught.value.code == "ReadOnly"


def bfloat16(values: list[float]) -> Any:
    """A bfloat16 array like those of ml_dtypes: NumPy can't export it, but can export a view of
    it.
    """
    bits = (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.int16)

    class BFloat16(np.ndarray):
        @property
        def dtype(self) -> Any:
            return type("DType", (), {"name": "bfloat16"})()

        def view(self, _: Any) -> Any:  # type: ignore[override]
            return bits

    return np.zeros(len(values), "datetime64[s]").view(BFloat16)  # has no buffer either


def test_bfloat16() -> None:
    y = echo.load()(bfloat16([1, 0.5, -3])).y
    assert repr(y) == "Tensor(shape=(3,), dtype=bfloat16)"
    assert y.shape == (3,) and y.dtype == "bfloat16" and y.__dlpack_device__() == (1, 0)
    assert np.asarray(y).tolist() == [1, 0.5, -3]
    assert np.asarray(y, np.float64).dtype == np.float64
    # Any number of consumers may take it, or release it unused.
    again = echo.load()(y).y
    del y
    gc.collect()
    assert np.asarray(again).tolist() == [1, 0.5, -3]
    assert again.__dlpack__() is not None
    assert "dltensor_versioned" in repr(again.__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError):
        again.__dlpack__(dl_device=(2, 0))


def test_empty() -> None:
    assert np.asarray(echo.load()(bfloat16([])).y).shape == (0,)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2), {}, "adder: got 2 positional inputs, must be at most 1; its inputs are x"),
        ((), {"z": 1}, 'adder: there is no input "z"; its inputs are x'),
        ((1,), {"x": 1}, 'adder: input "x" is given twice'),
    ],
)
def test_wrong_arguments(add: Any, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        add(*args, **kwargs)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("x", "code", "message"),
    [
        (
            [[1.0, 2.0]],
            "InvalidArgument",
            "got list, must be a NumPy array or an object with __dlpack__() or a buffer",
        ),
        (np.zeros((1, 2)), "WrongDType", "dtype is float64, must be float32"),
        (np.zeros((1, 2), ">f4"), "WrongDType", "dtype is >f4, which is not supported"),
        (np.zeros((1, 2), np.uint64), "WrongDType", "dtype is uint64, which is not supported"),
        (
            np.zeros(2, np.float32),
            "WrongRank",
            "rank is 1 (shape [2]), must be 2 ([batch, 2])",
        ),
    ],
)
def test_wrong_inputs(add: Any, x: Any, code: str, message: str) -> None:
    with pytest.raises(adder.InputError) as caught:
        add(x)
    assert str(caught.value) == f'adder: input "x": {message}'
    assert caught.value.code == code
    assert isinstance(caught.value, adder.Error)
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, ValueError)


def test_missing_input(add: Any) -> None:
    with pytest.raises(adder.InputError, match="not given, must be float32"):
        add()


def test_loading_fails(tmp_path: Path) -> None:
    with pytest.raises(adder.Error) as caught:
        adder.load(tmp_path / "absent")
    assert caught.value.code == "WeightsNotFound"
    assert not isinstance(caught.value, ValueError)
    with pytest.raises(adder.InputError, match="num_runners is -1"):
        adder.load(num_runners=-1)


def test_copied_weights(tmp_path: Path) -> None:
    path = write_weights(tmp_path / "w", {"bias": [10, 20]})
    model = adder.load(path, copy_weights=True)
    path.write_bytes(b"")
    np.testing.assert_array_equal(model(np.zeros((1, 2), np.float32)).y, [[10, 20]])


def test_swapped_weights(add: Any, tmp_path: Path) -> None:
    x = np.zeros((1, 2), np.float32)
    add.swap_weights(write_weights(tmp_path / "new", {"bias": [1, 2]}))
    assert add(x).y.tolist() == [[1, 2]]
    path = write_weights(tmp_path / "copied", {"bias": [3, 4]})
    add.swap_weights(str(path), copy_weights=True)
    path.write_bytes(b"")
    assert add(x).y.tolist() == [[3, 4]]


def test_swapping_fails(add: Any, tmp_path: Path) -> None:
    with pytest.raises(adder.Error, match="No such file or directory") as caught:
        add.swap_weights(tmp_path / "absent")
    assert caught.value.code == "WeightsNotFound"
    with pytest.raises(adder.InputError, match="must be the path of a safetensors file"):
        add.swap_weights("")
    with pytest.raises(adder.Error, match=r"must be float32\[2\]"):
        add.swap_weights(write_weights(tmp_path / "wrong", {"bias": [1]}))
    assert add(np.zeros((1, 2), np.float32)).y.tolist() == [[10, 20]]


def test_threads(add: Any) -> None:
    wrong: list[Any] = []

    def work(number: float) -> None:
        x = np.full((2, 2), number, np.float32)
        for _ in range(50):
            if add(x).y[1, 0] != number + 10:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_torch_is_not_imported() -> None:
    assert "torch" not in sys.modules
