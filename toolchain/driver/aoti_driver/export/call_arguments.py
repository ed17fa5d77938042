"""The arguments of forward(), from values by their paths or from the result of the user's
function.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract.specs import TensorSpec

_PATH_PART = re.compile(r"\.?(?P<name>[^\W\d]\w*)|\[(?P<index>\d+)\]|\[\"(?P<key>[^\"]*)\"\]")


def split_sample(sample: Any, label: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(sample, Mapping) and all(isinstance(k, str) for k in sample):
        return (), dict(sample)
    if isinstance(sample, (tuple, list)):
        if (
            len(sample) == 2
            and isinstance(sample[0], (tuple, list))
            and isinstance(sample[1], Mapping)
            and all(isinstance(k, str) for k in sample[1])
        ):
            return tuple(sample[0]), dict(sample[1])
        return tuple(sample), {}
    if isinstance(sample, torch.Tensor):
        return (sample,), {}
    raise DriverError(
        f"{label}: sample_inputs: expected a tuple of arguments, a dict of keyword arguments, or "
        f"a tuple of both, got {type(sample).__name__}"
    )


def bind(
    module: torch.nn.Module, values: dict[str, Any], label: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments up to the first gap in the signature, and keyword arguments for the
    rest.
    """
    signature = inspect.signature(module.forward)
    parameters = signature.parameters.values()
    name = method_name(module)
    shown = f"{name}{signature}"
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    positional_only = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    unknown = [n for n in values if n not in [*named, *positional_only]]
    if unknown and not takes_any:
        raise DriverError(
            f'{label}: inputs: {name}() has no argument "{unknown[0]}"'
            f"{did_you_mean(unknown[0], named)}. "
            f"Its arguments: {listed([*positional_only, *named])}.\n  {shown}"
        )
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name not in values
    ]
    if missing:
        raise DriverError(
            f"{label}: inputs: {name}() needs {listed(missing)}, which inputs does not give.\n"
            f'  {shown}\n  Add for example "{missing[0]}": "float32[1, 8]".'
        )
    args: list[Any] = []
    for p in parameters:
        if p.name not in values or p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            break
        args.append(values.pop(p.name))
    return tuple(args), in_signature_order(module, values)


def method_name(module: torch.nn.Module) -> str:
    """The name of the method that a call of the module calls."""
    name = getattr(module.forward, "__name__", "forward")
    return name if name in dir(type(module)) else "forward"


def in_signature_order(module: torch.nn.Module, kwargs: dict[str, Any]) -> dict[str, Any]:
    order = list(inspect.signature(module.forward).parameters)
    known = [n for n in order if n in kwargs]
    return {n: kwargs[n] for n in [*known, *(k for k in kwargs if k not in order)]}


def positional_names(module: torch.nn.Module, count: int) -> list[list[Any]]:
    names: list[list[Any]] = []
    for p in inspect.signature(module.forward).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            names += [[p.name, i] for i in range(count - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append([p.name])
    return names[:count]


def with_distinct_tensors(arguments: tuple[Any, Any]) -> tuple[Any, Any]:
    """Clones tensors that are passed twice, so that each is a separate input."""
    leaves, structure = pytree.tree_flatten(arguments)
    seen: set[int] = set()
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            if id(leaf) in seen:
                leaves[i] = leaf.clone()
            seen.add(id(leaf))
    args, kwargs = pytree.tree_unflatten(leaves, structure)
    return args, kwargs


def parse_path(text: str, label: str) -> list[str | int]:
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        match = _PATH_PART.match(text, position)
        if match is None or (not parts and (match["name"] is None or text[0] == ".")):
            raise DriverError(
                f'{label}: inputs: "{text}" is neither the name of an argument nor a path such as '
                '"cache[0]" or "state.h"'
            )
        index = match["index"]
        parts.append(int(index) if index is not None else (match["name"] or match["key"]))
        position = match.end()
    if not parts:
        raise DriverError(f"{label}: inputs: an empty name")
    return parts


def check_number(value: Any, spec: TensorSpec, where: str) -> None:
    """Refuses a sample that is not a number of the declared type, or outside of its range."""
    known = (int,) if spec.number == "int" else (int, float)
    if not isinstance(value, known) or isinstance(value, bool):
        raise DriverError(
            f"{where}: the spec says {spec.number}, the sample is {type(value).__name__}"
        )
    if spec.values is not None and not spec.values[0] <= value <= spec.values[1]:
        raise DriverError(f"{where}: the spec says {spec}, the sample is {value}")


def number_default(module: torch.nn.Module, path: str, spec: TensorSpec) -> float | None:
    """The default of a number in the signature, if a call may pass it."""
    parameter = inspect.signature(module.forward).parameters.get(path)
    default = parameter.default if parameter is not None else None
    known = (int,) if spec.number == "int" else (int, float)
    if not isinstance(default, known) or isinstance(default, bool) or not math.isfinite(default):
        return None
    if spec.values is not None and not spec.values[0] <= default <= spec.values[1]:
        return None
    return default


def insert(
    values: dict[Any, Any], parts: Sequence[str | int], value: Any, path: str, label: str
) -> None:
    for part in parts[:-1]:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise DriverError(f'{label}: inputs["{path}"]: a part of this path has a value itself')
    if parts[-1] in values:
        raise DriverError(f'{label}: inputs["{path}"]: this path is given twice')
    values[parts[-1]] = value


def with_lists(value: Any, path: str, label: str) -> Any:
    """Turns dicts with the keys 0..n-1 into lists."""
    if not isinstance(value, dict):
        return value
    items = {k: with_lists(v, f"{path}[{k}]", label) for k, v in value.items()}
    if not any(isinstance(k, int) for k in items):
        return items
    if set(items) != set(range(len(items))):
        raise DriverError(
            f'{label}: inputs: the entries of "{path}" must be {path}[0] to '
            f"{path}[{len(items) - 1}], got {listed(map(str, items))}"
        )
    return [items[i] for i in range(len(items))]
