"""Calls operators of the slim runtime by name, as generated code does."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import harness
import torch


class List(list[Any]):
    """A list argument."""


class Some:
    """An optional argument that has a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


def pack(slim: harness.Slim, value: Any) -> int:
    """One value of the stack; the operator takes ownership of objects."""
    library = slim.library
    handle = ctypes.c_void_p()
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value & (2**64 - 1)
    if isinstance(value, float):
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    if isinstance(value, torch.dtype):
        return int(getattr(library, f"aoti_torch_dtype_{str(value).removeprefix('torch.')}")())
    if isinstance(value, torch.Tensor):
        return slim.borrow(value).value or 0
    if isinstance(value, str):
        data = value.encode()
        library.torch_new_string_handle(data, ctypes.c_size_t(len(data)), ctypes.byref(handle))
        return handle.value or 0
    if isinstance(value, List):
        library.torch_new_list_reserve_size(ctypes.c_size_t(0), ctypes.byref(handle))
        for item in value:
            assert library.torch_list_push_back(handle, ctypes.c_uint64(pack(slim, item))) == 0
        return handle.value or 0
    assert isinstance(value, Some)
    box = ctypes.POINTER(ctypes.c_uint64)()
    library.torch_new_stable_ivalue(ctypes.byref(box))
    box[0] = pack(slim, value.value)
    return ctypes.cast(box, ctypes.c_void_p).value or 0


def call(slim: harness.Slim, name: str, *args: Any, results: int = 1) -> tuple[torch.Tensor, ...]:
    """Calls ``name`` ("aten::median.dim"); returns copies of its tensors."""
    op, _, overload = name.partition(".")
    size = max(len(args), results, 1)
    stack = (ctypes.c_uint64 * size)(*(pack(slim, value) for value in args))
    if slim.library.aoti_torch_call_dispatcher(op.encode(), overload.encode(), stack) != 0:
        raise harness.OpError(slim.library.torch_exception_get_what_without_backtrace().decode())
    tensors = []
    for i in range(results):
        handle = ctypes.c_void_p(stack[i])
        tensors.append(slim.read(handle))
        slim.library.aoti_torch_delete_tensor_object(handle)
    return tuple(tensors)
