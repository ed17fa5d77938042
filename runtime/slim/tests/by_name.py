"""Calls operators of the slim runtime that have no C function of their own by name."""

from __future__ import annotations

import ctypes
import struct

import torch
from harness import OpError, Slim

_WORD = 2**64


def call_by_name(
    slim: Slim, name: str, *args: torch.Tensor | list[int] | float | None
) -> torch.Tensor:
    """Returns the result of ``aten::<name>``. None stands for an optional argument without a
    value."""
    library = slim.library
    words = []
    for argument in args:
        if isinstance(argument, torch.Tensor):
            words.append(slim.borrow(argument).value or 0)
        elif isinstance(argument, list):
            items = ctypes.c_void_p()
            size = ctypes.c_size_t(len(argument))
            assert library.torch_new_list_reserve_size(size, ctypes.byref(items)) == 0
            for item in argument:
                assert library.torch_list_push_back(items, ctypes.c_uint64(item % _WORD)) == 0
            words.append(items.value or 0)
        elif isinstance(argument, float):
            words.append(struct.unpack("<Q", struct.pack("<d", argument))[0])
        else:
            words.append(0 if argument is None else int(argument) % _WORD)
    stack = (ctypes.c_uint64 * len(words))(*words)
    if library.aoti_torch_call_dispatcher(f"aten::{name}".encode(), b"", stack) != 0:
        raise OpError((library.torch_exception_get_what_without_backtrace() or b"").decode())
    result = ctypes.c_void_p(stack[0])
    try:
        return slim.read(result)
    finally:
        library.aoti_torch_delete_tensor_object(result)
