"""Determines of which stored tensor each tensor of a program is a view.

Tied parameters share a stored tensor; views of one storage are views of one stored tensor, with
their strides and offsets.
"""

from __future__ import annotations

import dataclasses
import math
import mmap
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.program.safetensors_header import ALIGNMENT
from aoti_driver.program.weights_file import dtype_name, tensor_at, torch_dtype


@dataclasses.dataclass(frozen=True)
class View:
    """A tensor of the program as a view of a stored, contiguous one."""

    stored: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    parameter: bool
    requires_grad: bool


@dataclasses.dataclass(frozen=True)
class Layout:
    views: dict[str, View]
    stored: dict[str, torch.Tensor]


def names_by_memory(ep: ExportedProgram) -> list[list[str]]:
    """The names of the program's tensors that have elements; those that share memory together."""
    groups: dict[int, list[str]] = {}
    for name, tensor in {**ep.state_dict, **ep.constants}.items():
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            groups.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
    return list(groups.values())


def layout(ep: ExportedProgram) -> Layout:
    tensors = _named_tensors(ep)
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        empty = storage.nbytes() == 0 or tensor.numel() == 0
        key = (name,) if empty else (storage.data_ptr(), tensor.dtype)
        groups.setdefault(key, []).append(name)
    views: dict[str, View] = {}
    stored: dict[str, torch.Tensor] = {}
    for names in groups.values():
        members = {name: tensors[name] for name in names}
        base_name, base, begin = _base(members)
        stored[base_name] = base
        for name, tensor in members.items():
            views[name] = View(
                stored=base_name,
                dtype=dtype_name(tensor.dtype, name),
                shape=tuple(tensor.shape),
                stride=tuple(tensor.stride()),
                offset=int(tensor.storage_offset()) - begin if tensor.numel() else 0,
                parameter=isinstance(tensor, torch.nn.Parameter),
                requires_grad=tensor.requires_grad,
            )
    order = {name: i for i, name in enumerate(tensors)}
    return Layout(
        {name: views[name] for name in tensors},
        dict(sorted(stored.items(), key=lambda item: order[item[0]])),
    )


def _base(members: Mapping[str, torch.Tensor]) -> tuple[str, torch.Tensor, int]:
    """(name, contiguous tensor, its offset in the storage) that all of ``members`` are views of.

    It is the first member that is contiguous and covers all others. If there is none (a transposed
    weight, slices side by side), it consists of the elements between the first and the last one
    used: a matrix if one member is the transpose of one, otherwise flat. It has the first member's
    name.
    """
    first = next(iter(members))
    if members[first].numel() == 0:
        return first, members[first].detach().contiguous(), 0
    begin = min(int(t.storage_offset()) for t in members.values())
    end = max(int(t.storage_offset()) + _extent(t) for t in members.values())
    for name, tensor in members.items():
        covers = tensor.storage_offset() == begin and tensor.numel() == end - begin
        if covers and tensor.is_contiguous():
            return name, tensor.detach(), begin
    for name, tensor in members.items():
        strides = tensor.stride()
        order = sorted(range(tensor.dim()), key=lambda d: (-strides[d], d))
        memory_order = tensor.detach().permute(order)
        if tensor.numel() == end - begin and memory_order.is_contiguous():
            return name, memory_order, begin
    flat = members[first].detach().as_strided((end - begin,), (1,), begin)
    return first, flat, begin


def _extent(tensor: torch.Tensor) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))


def _named_tensors(ep: ExportedProgram) -> dict[str, torch.Tensor]:
    """The state dict and the constants; each is checked to be an ordinary CPU tensor."""
    tensors: dict[str, torch.Tensor] = {}
    for name, value in [*ep.state_dict.items(), *ep.constants.items()]:
        if not isinstance(value, torch.Tensor):
            raise DriverError(
                f"constant {name!r} is a {type(value).__name__}; only tensors can be stored. "
                "An object of a class in C++ is stored where AOTI_CUSTOM_CLASS declares the class: "
                "docs/custom_classes.md"
            )
        if type(value.data) is not torch.Tensor:
            raise DriverError(
                f"{name!r} is a {type(value.data).__name__}, a tensor subclass; only plain tensors "
                "can be stored. torch_export unwraps parameters whose class has "
                "__tensor_flatten__; make this one such, or a plain tensor"
            )
        if value.layout != torch.strided or value.device.type != "cpu":
            raise DriverError(
                f"{name!r} is a {value.layout} tensor on {value.device}; "
                "expected a dense one on cpu"
            )
        if name in tensors:
            raise DriverError(f"{name!r} names both a state dict entry and a constant")
        tensors[name] = value
    return tensors


def make_tensors(
    document: Mapping[str, Any], weights: Mapping[str, torch.Tensor] | None, who: str
) -> dict[str, torch.Tensor]:
    stored = _zeros(document["stored"]) if weights is None else weights
    for name, entry in document["stored"].items():
        if name not in stored:
            raise DriverError(f"{who}: the weights file has no tensor {name!r}")
        got = (tuple(stored[name].shape), dtype_name(stored[name].dtype, name))
        want = (tuple(entry["shape"]), entry["dtype"])
        if got != want:
            raise DriverError(
                f"{who}: the weights file's {name!r} is {got[1]}{list(got[0])}, "
                f"the graph needs {want[1]}{list(want[0])}"
            )
    tensors = {}
    for name, entry in document["tensors"].items():
        view = View(**entry)
        tensor = stored[view.stored].detach().as_strided(view.shape, view.stride, view.offset)
        if view.parameter:
            tensor = torch.nn.Parameter(tensor, requires_grad=view.requires_grad)
        tensors[name] = tensor
    return tensors


def _zeros(stored: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Zeros in one anonymous mapping: pages that are never written use no memory."""
    sizes = {}
    for name, entry in stored.items():
        sizes[name] = math.prod(entry["shape"]) * torch_dtype(entry["dtype"]).itemsize
    total = sum(size + -size % ALIGNMENT for size in sizes.values())
    storage = torch.frombuffer(mmap.mmap(-1, max(total, 1)), dtype=torch.uint8).untyped_storage()
    result = {}
    begin = 0
    for name, entry in stored.items():
        end = begin + sizes[name]
        result[name] = tensor_at(storage, begin, end, torch_dtype(entry["dtype"]), entry["shape"])
        begin += sizes[name] + -sizes[name] % ALIGNMENT
    return result
