"""Invalid arguments of all kinds: each leads to an exception that says what is wrong."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
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
    return counter.load(write_weights(tmp_path / "w", {"count": [5], "total": [50]}))


def refusal(model: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the exception of a call that the model refuses; checks that the next call
    succeeds.
    """
    with pytest.raises((adder.InputError, counter.InputError, echo.InputError)) as caught:
        model(*args, **kwargs)
    return caught.value


class Exporter:
    """Exports whatever a test sets."""

    def __init__(self, capsule: Any = None, device: Any = (1, 0), raises: Any = None) -> None:
        self.capsule, self.device, self.raises = capsule, device, raises

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.raises is not None:
            raise self.raises
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def export(
    values: Any, shape: Any, *, version: Any = None, flags: int = 0, **fields: Any
) -> Exporter:
    """A capsule over floats, with the given fields of DLTensor; without a version, it is of DLPack
    before 1.0.
    """
    memory = (ctypes.c_float * len(values))(*values)
    tensor = DLTensor(
        data=ctypes.addressof(memory), device_type=1, ndim=2, code=2, bits=32, lanes=1
    )
    sizes = None if shape is None else (ctypes.c_int64 * len(shape))(*shape)
    if sizes is not None:
        tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
        tensor.ndim = len(shape)
    for name, value in fields.items():
        setattr(tensor, name, value)
    managed: Any
    if version is None:
        managed = Managed(tensor=tensor)
        capsule = b"dltensor"
    else:
        managed = Versioned(major=version[0], minor=version[1], flags=flags, tensor=tensor)
        capsule = b"dltensor_versioned"
    exporter = Exporter(new_capsule(ctypes.addressof(managed), capsule, None))
    exporter.alive = (memory, sizes, managed, capsule)  # type: ignore[attr-defined]
    exporter.memory = memory  # type: ignore[attr-defined]
    return exporter


def test_valid_capsules(add: Any) -> None:
    assert add(export([1, 2], (1, 2))).y.tolist() == [[11, 22]]
    assert add(export([1, 2], (1, 2), version=(1, 9))).y.tolist() == [[11, 22]]
    strides = (ctypes.c_int64 * 2)(-2, 1)
    memory = (ctypes.c_float * 4)(1, 2, 3, 4)
    backwards = export(
        [0],
        (2, 2),
        data=ctypes.addressof(memory) + 8,
        strides=ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
    )
    assert add(backwards).y.tolist() == [[13, 24], [11, 22]]
    assert add(export([9, 1, 2], (1, 2), byte_offset=4)).y.tolist() == [[11, 22]]


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize(
    ("shape", "fields", "code", "message"),
    [
        ((1, 2), {"ndim": -1}, "WrongRank", "DLPack ndim is -1, must be in 0..1024"),
        (
            (1, 2),
            {"ndim": 2**31 - 1},
            "WrongRank",
            "DLPack ndim is 2147483647, must be in 0..1024",
        ),
        (None, {"ndim": 2}, "InvalidArgument", "DLPack shape is null, must have 2 sizes"),
        ((-1, 2), {}, "SizeOutOfRange", "dim 0 (batch) is -1, must be in 1..64"),
        ((2**62, 2), {}, "SizeOutOfRange", f"dim 0 (batch) is {2**62}, must be in 1..64"),
        ((), {}, "WrongRank", "rank is 0 (shape []), must be 2 ([batch, 2])"),
        (
            (1, 2),
            {"data": None},
            "NullData",
            "data is null, but shape [1, 2] has 2 elements",
        ),
        (
            (1, 2),
            {"lanes": 4},
            "WrongDType",
            "DLPack dtype with code 2, 32 bits and 4 lanes is not supported",
        ),
        (
            (1, 2),
            {"code": 10, "bits": 8},
            "WrongDType",
            "DLPack dtype with code 10, 8 bits and 1 lanes is not supported",
        ),
        ((1, 2), {"device_type": 2}, "WrongDevice", "device is cuda:0, must be cpu"),
    ],
)
def test_malformed_capsules(
    add: Any, version: Any, shape: Any, fields: Any, code: str, message: str
) -> None:
    error = refusal(add, export([1, 2], shape, version=version, **fields))
    assert str(error) == f'adder: input "x": {message}'
    assert error.code == code


def test_capsules_of_other_versions(add: Any) -> None:
    assert str(refusal(add, export([1, 2], (1, 2), version=(2, 3)))) == (
        'adder: input "x": exported by DLPack 2.3, must be 1.x'
    )


def test_flags_of_capsules(count: Any) -> None:
    assert "memory is read-only" in str(refusal(count, export([0], (1,), version=(1, 0), flags=1)))
    error = refusal(count, export([0], (1,), version=(1, 0), flags=2))
    assert str(error) == (
        'counter: input "cache": Exporter.__dlpack__() exports a copy, but the model writes to the '
        "input"
    )
    assert error.code == "ReadOnly"
    writable = export([0], (1,), version=(1, 0))
    count(writable)
    assert writable.memory[0] == 100  # type: ignore[attr-defined]


def test_used_and_other_capsules(add: Any) -> None:
    used = Exporter(np.zeros((1, 2), np.float32).__dlpack__())
    np.from_dlpack(used)
    for wrong in (used, Exporter(new_capsule(1, None, None)), Exporter(None), Exporter("capsule")):
        message = str(refusal(add, wrong))
        assert message.startswith('adder: input "x": Exporter.__dlpack__() returned ')
        assert message.endswith(", must be a DLPack capsule that has not been consumed")


@pytest.mark.parametrize(
    "device", ["cpu", (1,), (1, 0, 0), (1.5, 0), (2**40, 0), (1, -(2**40)), None, [1, 0]]
)
def test_wrong_devices(add: Any, device: Any) -> None:
    error = refusal(add, Exporter(device=device))
    assert str(error) == (
        f'adder: input "x": Exporter.__dlpack_device__() returned {device!r}, must be a tuple of '
        "two integers, device type and device number"
    )
    assert error.code == "InvalidArgument"


class OddError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (BufferError("it has a gradient"), "BufferError: it has a gradient"),
        (TypeError("not now"), "TypeError: not now"),
        (ValueError("\udcff"), "ValueError: \\udcff"),
        (RecursionError("deep"), "RecursionError: deep"),
        (OddError(), "OddError"),
    ],
)
def test_an_exception_of_dlpack_is_the_cause(add: Any, raised: Exception, text: str) -> None:
    error = refusal(add, Exporter(raises=raised))
    assert str(error) == f'adder: input "x": Exporter: __dlpack__() raised {text}'
    assert error.__cause__ is raised
    assert error.code == "InvalidArgument"


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), MemoryError()]
)
def test_other_exceptions_are_passed_on(add: Any, raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught:
        add(Exporter(raises=raised))
    assert caught.value is raised

    class Attribute:
        @property
        def __dlpack__(self) -> Any:
            raise raised

    with pytest.raises(type(raised)):
        add(Attribute())


def test_an_exception_of_an_attribute_is_the_cause(add: Any) -> None:
    class Attribute:
        @property
        def __dlpack__(self) -> Any:
            raise LookupError("gone")

    error = refusal(add, Attribute())
    assert str(error) == 'adder: input "x": Attribute: __dlpack__ raised LookupError: gone'
    assert isinstance(error.__cause__, LookupError)


def test_an_input_that_calls_the_model(add: Any) -> None:
    class Caller(Exporter):
        def __dlpack__(self, **kwargs: Any) -> Any:
            return add(np.ones((1, 2), np.float32)).y.__dlpack__()

    assert add(Caller()).y.tolist() == [[21, 41]]


def test_arrays_that_numpy_cannot_export(add: Any) -> None:
    error = refusal(add, np.zeros((1, 2), "datetime64[s]"))
    assert str(error) == (
        'adder: input "x": numpy.ndarray: the export of its buffer raised ValueError: cannot '
        "include dtype 'M' in a buffer"
    )
    for dtype in ("V8", "S4", "U1", "O", "f4,f4", "complex128", "float128", "V0"):
        message = str(refusal(add, np.zeros((1, 2), dtype)))
        assert message.startswith('adder: input "x": dtype is ')
        assert message.endswith(", which is not supported")


def test_layouts(add: Any) -> None:
    grid = np.arange(8, dtype=np.float32).reshape(2, 4)
    for x in (grid[:, :2], grid[::-1, 1:3], grid[:, ::-1][:, :2], grid.T[:2, :], grid[:1, ::2]):
        assert add(x).y.tolist() == (x + np.array([10, 20])).tolist()
    raw = np.zeros(17, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(2, 2)
    assert add(unaligned).y.tolist() == [[10, 20], [10, 20]]
    fields = np.zeros((1, 2), [("a", "f4"), ("b", "i2")])
    assert "must be a multiple of" in str(refusal(add, fields["a"]))
    # One element that is broadcast.
    assert add(np.broadcast_to(np.float32(1), (3, 2))).y.tolist() == [[11, 21]] * 3


def test_ranks(add: Any) -> None:
    message = str(refusal(add, np.zeros((1,) * 64, np.float32)))
    assert "rank is 64" in message and message.endswith("must be 2 ([batch, 2])")
    assert "rank is 0" in str(refusal(add, np.float32(1)))


def test_nothing(add: Any) -> None:
    assert "dim 0 (batch) is 0" in str(refusal(add, np.zeros((0, 2), np.float32)))
    assert "dim 1 is 0, must be 2" in str(refusal(add, np.zeros((1, 0), np.float32)))
    assert "got NoneType" in str(refusal(add, None))


def test_classes_for_instances(add: Any) -> None:
    assert "got type" in str(refusal(add, int))
    assert refusal(add, Exporter).code == "InvalidArgument"


def test_a_view_of_another_type() -> None:
    class Liar(np.ndarray):
        @property
        def dtype(self) -> Any:
            return type("DType", (), {"name": "bfloat16"})()

        def view(self, _: Any) -> Any:  # type: ignore[override]
            return np.zeros(3, np.int8)

    liar = np.zeros(3, "datetime64[s]").view(Liar)
    assert str(refusal(echo.load(), liar)) == (
        'echo: input "x": Liar.view("int16") returned elements of int8, must be int16'
    )


def test_keywords_that_are_not_utf8(add: Any) -> None:
    with pytest.raises(TypeError) as caught:
        add(**{"\udcff": 1})
    assert str(caught.value) == 'adder: there is no input "\\udcff"; its inputs are x'


def test_names_in_a_file_that_are_not_utf8(tmp_path: Path) -> None:
    header = b'{"b\xff":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    path = tmp_path / "w"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(adder.Error) as caught:
        adder.load(path)
    assert caught.value.code in ("WeightsMismatch", "WeightsMalformed")
    assert "w" in str(caught.value)


def test_paths(tmp_path: Path) -> None:
    for name in (b"plain", b"not utf8 \xff", "\u00e4 \U0001f600".encode()):
        path = os.fsencode(tmp_path) + b"/" + name
        write_weights(Path(os.fsdecode(path)), {"bias": [10, 20]})
        for given in (path, os.fsdecode(path), Path(os.fsdecode(path))):
            assert adder.load(given)(np.zeros((1, 2), np.float32)).y.tolist() == [[10, 20]]
    with pytest.raises(adder.Error, match=r"absent \\xff: No such file") as absent:
        adder.load(os.fsencode(tmp_path) + b"/absent \xff")
    assert absent.value.code == "WeightsNotFound"
    for wrong in ("", b"", f"{tmp_path}/plain\0.txt"):
        with pytest.raises(adder.InputError) as caught:
            adder.load(wrong)
        assert str(caught.value) == (
            f"adder: weights is {wrong!r}, must be the path of a safetensors file, or None for the "
            "weights that were built with the model"
        )
    with pytest.raises(TypeError, match="not int"):
        adder.load(5)


@pytest.mark.parametrize("options", [{"threads": "2"}, {"num_runners": 2**40}, {"thread": 1}])
def test_options(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"load\(\)"):
        adder.load(**options)


def test_only_load_makes_models(add: Any) -> None:
    model = adder.Model
    for make in (
        model,
        lambda: model.__new__(model),
        lambda: object.__new__(model),
        lambda: model.__base__.__new__(model),
        lambda: type("Sub", (model,), {}),
        lambda: copy.copy(add),
        lambda: copy.deepcopy(add),
        lambda: pickle.dumps(add),
        lambda: model.__repr__(None),
        lambda: model.__call__(object()),
        lambda: setattr(model, "__call__", None),
    ):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError, match=r"call load\(\), in each process"):
        pickle.dumps(add)
    assert repr(add) == "<Model //tests:adder>"


def test_only_models_make_tensors() -> None:
    tensor = echo.load()(export([0], (0,), code=4, bits=16)).y
    for make in (
        echo.Tensor,
        lambda: echo.Tensor.__new__(echo.Tensor),
        lambda: echo.Tensor.__base__.__new__(echo.Tensor),
        lambda: copy.deepcopy(tensor),
        lambda: pickle.dumps(tensor),
        lambda: echo.Tensor.shape.fget(None),
        lambda: echo.Tensor.__dlpack__(None),
        lambda: setattr(tensor, "__class__", echo.Model),
        lambda: setattr(tensor, "__class__", adder.Tensor),
    ):
        with pytest.raises(TypeError):
            make()
    for device in ("cpu", (1,), (2**40, 0)):
        with pytest.raises(TypeError):
            tensor.__dlpack__(dl_device=device)
    with pytest.raises(TypeError):
        tensor.__array__(copy="yes")
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(tensor, copy=False)


def test_what_crosses_processes(add: Any) -> None:
    out = pickle.loads(pickle.dumps(add(np.zeros((1, 2), np.float32))))
    assert out.y.tolist() == [[10, 20]] and type(out) is adder.Outputs
    error = pickle.loads(pickle.dumps(refusal(add, None)))
    assert type(error) is adder.InputError and error.code == "InvalidArgument"
