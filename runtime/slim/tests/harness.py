"""Calls the slim runtime's C ABI from Python, on memory of torch tensors.

The signatures come from torch's own header, so an operator needs no code here:

    (out,) = slim.call("aoti_torch_cpu_cumsum", x, 1, None)
    slim.call("aoti_torch_cpu_mm_out", out, a, b)       # writes into out's memory
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

_HEADERS = [
    Path(torch.__file__).parents[2] / "torch_headers/torch/csrc/inductor/aoti_torch" / name
    for name in ("generated/c_shim_cpu.h", "generated/c_shim_aten.h", "c/shim.h", "c/shim_cpu.h")
]
_DTYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.uint16: 27,
    torch.uint32: 28,
    torch.uint64: 29,
}
_NUMBERS = {number: dtype for dtype, number in _DTYPES.items()}
_SCALARS: dict[str, Any] = {
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "constuint32_t": ctypes.c_uint32,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "bool": ctypes.c_bool,
    "size_t": ctypes.c_size_t,
}


class OpError(Exception):
    """The operator reported an error; the message is the shim's."""


def _signatures() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for header in _HEADERS:
        text = re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8"))
        for name, arguments in re.findall(r"AOTITorchError\s+(\w+)\(([^)]*)\)", text):
            parameters = []
            for argument in filter(None, (a.strip() for a in arguments.split(","))):
                parts = re.fullmatch(r"(.*?)(\w+)", " ".join(argument.split()))
                assert parts is not None, argument
                parameters.append((parts[1].replace(" ", ""), parts[2]))
            found[name] = parameters
    return found


class Library:
    """A shared library whose functions are hidden; it has a table of them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._library = ctypes.CDLL(os.fspath(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self._find = getattr(self._library, "aoti_slim_function", None)
        if self._find is not None:
            self._find.restype = ctypes.c_void_p

    def __getattr__(self, name: str) -> Any:
        if self._find is None:
            function = getattr(self._library, name)
        else:
            address = self._find(name.encode())
            if address is None:
                raise AttributeError(f"the library has no function {name}")
            function = self._library._FuncPtr(address)
        setattr(self, name, function)
        return function


def among_others(
    tensor: torch.Tensor, filler: float, others: int = 8
) -> tuple[torch.Tensor, torch.Tensor]:
    """A copy of ``tensor`` between ``others`` channels, which have the value ``filler``: all of
    them, and those of the copy. The channels of a pixel are contiguous.
    """
    batch, channels, *sizes = tensor.shape
    shape = (batch, *sizes, channels + others)
    memory = torch.full(shape, filler, dtype=tensor.dtype).movedim(-1, 1)
    part = memory[:, 3 : 3 + channels]
    part.copy_(tensor)
    return memory, part


class Slim:
    """The shim in a shared library. Errors: :class:`OpError`, with the shim's message."""

    def __init__(self, library: str | os.PathLike[str]) -> None:
        self.library: Any = Library(library)
        self._signatures = _signatures()
        self.library.torch_exception_get_what_without_backtrace.restype = ctypes.c_char_p

    def call(self, name: str, *args: Any) -> tuple[torch.Tensor, ...]:
        """Calls ``name``; returns copies of the tensors in its ``ret`` parameters.

        args: tensors (their memory is borrowed: functions ending in ``_out`` write to it), None for
        missing optional values, numbers, lists of int (which add their length), strings.
        """
        keep: list[Any] = []
        handles: list[ctypes.c_void_p] = []
        results: list[ctypes.c_void_p] = []
        given = iter(args)
        values: list[Any] = []
        try:
            parameters = self._signatures[name]
            skip = False
            for i, (kind, parameter) in enumerate(parameters):
                if skip:
                    skip = False
                    continue
                if re.fullmatch(r"ret\d+", parameter):
                    box = ctypes.c_void_p()
                    results.append(box)
                    values.append(ctypes.byref(box))
                    continue
                argument = next(given)
                has_length = i + 1 < len(parameters) and parameters[i + 1][1].endswith("_len_")
                converted = self._convert(kind, argument, handles, keep)
                values.append(converted)
                if has_length:
                    values.append(ctypes.c_int64(0 if argument is None else len(argument)))
                    skip = True
            function = getattr(self.library, name)
            function.restype = ctypes.c_int32
            if function(*values) != 0:
                what = self.library.torch_exception_get_what_without_backtrace()
                raise OpError((what or b"").decode())
            return tuple(self.read(handle) for handle in results if handle.value)
        finally:
            for handle in handles + results:
                if handle.value:
                    self.library.aoti_torch_delete_tensor_object(handle)

    def result(
        self, function: Any, handles: Sequence[ctypes.c_void_p | None], *arguments: Any
    ) -> torch.Tensor:
        """Calls a function of slim's own with `arguments` and a place for its result.

        handles: owned ones, which are deleted after the call.
        """
        box = ctypes.c_void_p()
        try:
            self._run(function, handles, *arguments, ctypes.byref(box))
            return self.read(box)
        finally:
            self._delete([box])

    def result_in(
        self,
        like: torch.Tensor | None,
        function: Any,
        handles: Sequence[ctypes.c_void_p | None],
        *arguments: Any,
    ) -> torch.Tensor:
        """As result(), for a function that writes its result to a tensor if it is given one.

        like: gives it a tensor of this size, some of the channels of a larger one, of which the
        others must stay as they are; None: no tensor.
        """
        if like is None:
            return self.result(function, handles, *arguments, ctypes.c_void_p())
        memory, part = among_others(like, float("nan"))
        part.zero_()
        into, box = self.borrow(part), ctypes.c_void_p()
        self._run(function, [*handles, into], *arguments, into, ctypes.byref(box))
        assert box.value is None
        result = part.movedim(1, -1).clone(memory_format=torch.contiguous_format).movedim(-1, 1)
        part.fill_(float("nan"))
        assert bool(memory.isnan().all())
        return result

    def _run(
        self, function: Any, handles: Sequence[ctypes.c_void_p | None], *arguments: Any
    ) -> None:
        """Calls the function, and deletes the handles."""
        try:
            if function(*arguments) != 0:
                what = self.library.torch_exception_get_what_without_backtrace()
                raise OpError((what or b"").decode())
        finally:
            self._delete(handles)

    def _delete(self, handles: Sequence[ctypes.c_void_p | None]) -> None:
        for handle in handles:
            if handle is not None and handle.value:
                self.library.aoti_torch_delete_tensor_object(handle)

    def borrow(self, tensor: torch.Tensor) -> ctypes.c_void_p:
        """A handle over ``tensor``'s memory, which must outlive it."""
        handle = ctypes.c_void_p()
        rank = tensor.dim()
        array = ctypes.c_int64 * max(rank, 1)
        base = tensor.data_ptr() - int(tensor.storage_offset()) * tensor.element_size()
        status = self.library.aoti_torch_create_tensor_from_blob(
            ctypes.c_void_p(base or 64),
            ctypes.c_int64(rank),
            array(*tensor.shape),
            array(*tensor.stride()),
            ctypes.c_int64(int(tensor.storage_offset())),
            ctypes.c_int32(_DTYPES[tensor.dtype]),
            ctypes.c_int32(0),
            ctypes.c_int32(0),
            ctypes.byref(handle),
        )
        assert status == 0
        return handle

    def read(self, handle: ctypes.c_void_p) -> torch.Tensor:
        """A copy of the tensor that ``handle`` refers to, with its strides."""
        library = self.library
        rank, dtype = ctypes.c_int64(), ctypes.c_int32()
        sizes, strides = ctypes.POINTER(ctypes.c_int64)(), ctypes.POINTER(ctypes.c_int64)()
        data = ctypes.c_void_p()
        assert library.aoti_torch_get_dim(handle, ctypes.byref(rank)) == 0
        assert library.aoti_torch_get_dtype(handle, ctypes.byref(dtype)) == 0
        assert library.aoti_torch_get_sizes(handle, ctypes.byref(sizes)) == 0
        assert library.aoti_torch_get_strides(handle, ctypes.byref(strides)) == 0
        assert library.aoti_torch_get_data_ptr(handle, ctypes.byref(data)) == 0
        shape, stride = sizes[: rank.value], strides[: rank.value]
        result = torch.empty_strided(shape, stride, dtype=_NUMBERS[dtype.value])
        size = result.untyped_storage().nbytes()
        if size and result.numel():
            ctypes.memmove(result.untyped_storage().data_ptr(), data, size)
        return result

    def _convert(self, kind: str, argument: Any, handles: list[Any], keep: list[Any]) -> Any:
        if kind in ("AtenTensorHandle", "constAtenTensorHandle"):
            handles.append(self.borrow(argument))
            return handles[-1]
        if kind == "AtenTensorHandle*":  # optional
            if argument is None:
                return None
            handles.append(self.borrow(argument))
            keep.append(ctypes.byref(handles[-1]))
            return keep[-1]
        if kind == "constAtenTensorHandle*":
            own = [self.borrow(tensor) for tensor in argument]
            handles.extend(own)
            return (ctypes.c_void_p * max(len(own), 1))(*(handle.value for handle in own))
        if kind == "constAtenTensorHandle**":  # optional tensors
            boxes: list[Any] = []
            for tensor in argument:
                if tensor is None:
                    boxes.append(None)
                    continue
                handles.append(self.borrow(tensor))
                keep.append(ctypes.pointer(handles[-1]))
                boxes.append(keep[-1])
            pointers = [
                ctypes.cast(b, ctypes.c_void_p).value if b is not None else None for b in boxes
            ]
            return (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
        if kind == "constchar**":  # an optional string
            if argument is None:
                return None
            keep.append(ctypes.c_char_p(argument.encode()))
            return ctypes.byref(keep[-1])
        if kind == "constchar*":
            return argument.encode() if isinstance(argument, str) else argument
        if kind.startswith("const") and kind.endswith("*"):
            element = _SCALARS[kind.removeprefix("const").removesuffix("*")]
            return None if argument is None else (element * max(len(argument), 1))(*argument)
        if kind.endswith("*"):  # an optional number
            if argument is None:
                return None
            if isinstance(argument, torch.dtype):
                argument = _DTYPES[argument]
            box = _SCALARS[kind.removesuffix("*")](argument)
            keep.append(box)
            return ctypes.byref(box)
        if isinstance(argument, torch.dtype):
            argument = _DTYPES[argument]
        return _SCALARS[kind](argument)


def assert_equal(
    actual: torch.Tensor,
    expected: torch.Tensor,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    strides: bool = False,
) -> None:
    """Like torch.testing.assert_close, with equal NaNs; ``strides`` compares the layout too."""
    assert actual.dtype == expected.dtype, f"{actual.dtype} is not {expected.dtype}"
    assert actual.shape == expected.shape, f"{actual.shape} is not {expected.shape}"
    if strides:
        assert actual.stride() == expected.stride(), f"{actual.stride()} is not {expected.stride()}"
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


def load(environment: str = "AOTI_SLIM_LIBRARY") -> Slim:
    """The library that the build made for tests."""
    return Slim(os.environ[environment])
