"""What is checked of a call before the compiled model sees it, also when PyTorch only traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from aoti_operator.declaration import Operator, SizeInput, TensorInput, Variants


def check_kinds(operator: Operator, arguments: Sequence[Any], devices: Sequence[str]) -> None:
    """Device, dtype and rank of each tensor. Raises ValueError."""
    for item, argument in zip(operator.inputs, arguments):
        if not isinstance(item, TensorInput):
            continue
        where = f'{operator.name}: input "{item.name}"'
        if argument.device.type not in devices:
            raise ValueError(f"{where} is on {argument.device}, must be on the CPU")
        if argument.dtype != item.dtype:
            raise ValueError(f"{where}: dtype is {argument.dtype}, must be {item.dtype}")
        if argument.dim() != len(item.sizes):
            raise ValueError(
                f"{where} has {argument.dim()} dims, must have {len(item.sizes)}: "
                f"its sizes are {tuple(argument.shape)}"
            )


def chosen(
    operator: Operator | Variants, arguments: Sequence[Any], devices: Sequence[str]
) -> Operator:
    """The variant that takes the arguments. Raises ValueError if none has their dtypes and ranks.

    Where only symbolic sizes tell variants apart, it is the last one: all compute the same.
    """
    known = operator.variants
    if len(known) == 1:
        check_kinds(known[0], arguments, devices)
        return known[0]
    alike = []
    for variant in known:
        try:
            check_kinds(variant, arguments, devices)
        except ValueError:
            continue
        if _fits(variant, arguments):
            return variant
        alike.append(variant)
    if not alike:
        check_kinds(known[-1], arguments, devices)  # says what the last one takes
    return alike[-1]


def _fits(operator: Operator, arguments: Sequence[Any]) -> bool:
    """Whether the sizes are known to be those that the operator takes; adds no guard."""
    dims = _values(operator, arguments)
    for item, argument in zip(operator.inputs, arguments):
        if not isinstance(item, TensorInput):
            continue
        for size, given in zip(item.sizes, argument.shape):
            expected = (
                size.offset if size.dim is None else size.scale * dims[size.dim] + size.offset
            )
            if not statically_known_true(given == expected):
                return False
    return all(
        statically_known_true(dims[dim.name] >= dim.min)
        and statically_known_true(dims[dim.name] <= dim.max)
        for dim in operator.dims
    )


def dims_of(operator: Operator, arguments: Sequence[Any]) -> dict[str, Any]:
    """The dims' values, which may be symbolic. Sizes and ranges are checked, which becomes a guard
    of what is traced.
    """
    dims = _values(operator, arguments)
    for item, argument in zip(operator.inputs, arguments):
        if isinstance(item, TensorInput):
            _check_sizes(f'{operator.name}: input "{item.name}"', item, argument, dims)
    for dim in operator.dims:
        value = dims[dim.name]
        given = f"is {value}, must be" if isinstance(value, int) else "must be"
        message = f"{operator.name}: {dim.name} {given} in {dim.min}..{dim.max}"
        _require(value >= dim.min, message)
        _require(value <= dim.max, message)
    return dims


def _values(operator: Operator, arguments: Sequence[Any]) -> dict[str, Any]:
    """Each dim from where its size is the least multiple: no division, if that can be."""
    scales: dict[str, int] = {}
    dims: dict[str, Any] = {}
    for item, argument in zip(operator.inputs, arguments):
        if isinstance(item, SizeInput) and item.dim is not None:
            scales[item.dim], dims[item.dim] = 0, argument
        if not isinstance(item, TensorInput):
            continue
        for size, given in zip(item.sizes, argument.shape):
            if size.dim is not None and size.scale < scales.get(size.dim, size.scale + 1):
                value = given - size.offset
                dims[size.dim] = value // size.scale if size.scale > 1 else value
                scales[size.dim] = size.scale
    return dims


def _check_sizes(where: str, item: TensorInput, argument: Any, dims: dict[str, Any]) -> None:
    for d, (size, given) in enumerate(zip(item.sizes, argument.shape)):
        expected = size.offset if size.dim is None else size.scale * dims[size.dim] + size.offset
        name = "" if size.dim is None else f" (it depends on {size.dim})"
        message = f"{where}: dim {d} is {given}, must be {expected}{name}"
        _require(given == expected, message)


def _require(condition: Any, message: str) -> None:
    """A condition on symbolic sizes becomes a guard."""
    check: Any = torch._check
    check(condition, lambda: message)
