"""Moves a program to the pretended device: its tensors become fake ones there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from aoti_driver.program.nodes import nodes_of
from aoti_driver.torch_internals import patching

DEVICE = torch.device("cuda", 0)

# The attribute of a fake tensor with the stored one that it stands for.
_STORED = "aoti_stored"


@contextlib.contextmanager
def on_device(ep: ExportedProgram) -> Iterator[dict[str, torch.Tensor]]:
    """The program's graph knows the device wherever it names one; inside the block, its tensors are
    fake ones. Yields the stored tensors by name.
    """
    mode = _fake_mode(ep)
    tables = (ep.state_dict, ep.constants)
    before = [dict(table) for table in tables]
    stored = {
        name: value
        for table in before
        for name, value in table.items()
        if isinstance(value, torch.Tensor)
    }
    moved: dict[int, torch.Tensor] = {}

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        with mode:
            return torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=DEVICE
            )

    def move(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in moved:
            result = fake(tensor)
            if isinstance(tensor, torch.nn.Parameter):
                result = torch.nn.Parameter(result, requires_grad=False)
            setattr(result, _STORED, tensor.detach())
            moved[id(tensor)] = result
        return moved[id(tensor)]

    def all_fake(value: Any) -> Any:
        return pytree.tree_map_only(torch.Tensor, fake, value)

    for table in tables:
        for name in table.keys() & stored.keys():
            table[name] = move(table[name])
    for node in nodes_of(ep):
        node.meta["val"] = all_fake(node.meta.get("val"))
        node.args = pytree.tree_map_only(torch.device, lambda _: DEVICE, node.args)
        node.kwargs = pytree.tree_map_only(torch.device, lambda _: DEVICE, node.kwargs)
    args, kwargs = ep.example_inputs or ((), {})
    ep.example_inputs = (all_fake(args), all_fake(kwargs))
    try:
        yield stored
    finally:
        for table, values in zip(tables, before, strict=True):
            table.update(values)


def stored_tensor(tensor: torch.Tensor) -> torch.Tensor | None:
    """The program's tensor that a fake one stands for."""
    found: torch.Tensor | None = getattr(tensor, _STORED, None)
    return found


@contextlib.contextmanager
def told_apart() -> Iterator[None]:
    """Makes Inductor tell the constants apart, all of which begin at address 0."""
    place = "torch._inductor.graph:is_same_tensor"
    is_same = patching.original(place)

    def same(first: torch.Tensor, second: torch.Tensor) -> bool:
        if first is second:
            return True
        stored = [stored_tensor(first), stored_tensor(second)]
        return None not in stored and bool(is_same(*stored))

    with patching.replaced({place: same}):
        yield


def _fake_mode(ep: ExportedProgram) -> FakeTensorMode:
    for node in nodes_of(ep):
        value = node.meta.get("val")
        if isinstance(value, FakeTensor):
            return value.fake_mode
    return FakeTensorMode()


@contextlib.contextmanager
def computed_on_host() -> Iterator[None]:
    """Makes Inductor compute constants, such as a mask of one value, on the CPU."""
    place = "torch._inductor.fx_passes.joint_graph:UniformValueConstantFolder._deduce_value"
    deduce = patching.original(place)

    def deduce_on_host(folder: Any, node: torch.fx.Node) -> Any:
        if node.target is torch.ops.prims.device_put.default:
            return folder.env[node.args[0]]
        before = node.kwargs
        node.kwargs = pytree.tree_map_only(torch.device, lambda _: torch.device("cpu"), before)
        try:
            return deduce(folder, node)
        finally:
            node.kwargs = before

    with patching.replaced({place: deduce_on_host}):
        yield
