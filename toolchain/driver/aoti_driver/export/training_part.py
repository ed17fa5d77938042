"""One of the two programs of a training step, as a module that torch.export traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from aoti_driver.contract import polynomials
from aoti_driver.contract.size_expr import SizeExpr
from aoti_driver.export.joint import Joint, Node
from aoti_driver.export.partition import size_of_input

Shape = Sequence[SizeExpr]
Compute = Callable[[Mapping[Node, Any], Sequence[torch.Tensor]], Sequence[torch.Tensor]]


class TrainingPart(torch.nn.Module):
    """Has the tensors that the part reads, by their names in the model.

    wanted, given: the nodes that it computes, and those that are its arguments.
    """

    def __init__(
        self,
        joint: Joint,
        tensors: Mapping[str, torch.Tensor],
        wanted: Sequence[Node],
        given: Sequence[Node],
        names: Sequence[str],
        compute: Compute,
    ) -> None:
        super().__init__()
        # A module among a module's attributes is one of its parts: so it has its tensors.
        self._graph = joint.module
        self._names = names
        self._compute = compute
        needed = joint.needed(wanted, given)
        pairs = zip(tensors, joint.constants, strict=True)
        self._paths = {path: node for path, node in pairs if node in needed}
        for path in self._paths:
            self._add(path, tensors[path])

    def forward(self, *values: torch.Tensor) -> dict[str, torch.Tensor]:
        constants = {node: self._tensor(path) for path, node in self._paths.items()}
        return dict(zip(self._names, self._compute(constants, values), strict=True))

    def _add(self, path: str, tensor: torch.Tensor) -> None:
        *folders, last = path.split(".")
        place: Any = self
        for folder in folders:
            if not hasattr(place, folder):
                place.add_module(folder, torch.nn.Module())
            place = getattr(place, folder)
        if isinstance(tensor, torch.nn.Parameter):
            place.register_parameter(last, tensor)
        else:
            place.register_buffer(last, tensor)

    def _tensor(self, path: str) -> Any:
        place: Any = self
        for part in path.split("."):
            place = getattr(place, part)
        return place


def sizes_of(shapes: Sequence[Shape], tensors: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The dims, each from where its size is the least multiple: no division, if that can be."""
    scales: dict[str, int] = {}
    found: dict[str, Any] = {}
    for shape, tensor in zip(shapes, tensors, strict=True):
        for size, given in zip(shape, tensor.shape, strict=True):
            if not size_of_input(size):
                continue
            scale, dim, offset = polynomials.affine(size)
            if dim is not None and scale < scales.get(dim, scale + 1):
                value = given - offset if offset else given
                found[dim] = value // scale if scale > 1 else value
                scales[dim] = scale
    return found


def numbers(shape: Shape, sizes: Mapping[str, Any]) -> list[Any]:
    """Sizes that are polynomials, where those of the dims may be symbolic."""
    return [size.evaluate(sizes) for size in shape]
