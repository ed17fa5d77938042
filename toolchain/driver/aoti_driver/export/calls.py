"""One call of the module: its arguments, and the tensors among them with their names and specs."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import naming
from aoti_driver.contract.dims import Dims
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import Extent
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export.samples import make_inputs

_PATH_PART = re.compile(r"\.?(?P<name>[^\W\d]\w*)|\[(?P<index>\d+)\]|\[\"(?P<key>[^\"]*)\"\]")


@dataclasses.dataclass(frozen=True)
class Argument:
    """A tensor among the arguments: its name, its path, and its place among all leaves."""

    name: str
    path: str
    leaf: int
    spec: TensorSpec


@dataclasses.dataclass(frozen=True)
class Call:
    """Arguments for ``forward()``, with the dims' sizes that they have.

    ``arguments`` are in the order in which the exported program takes its inputs. ``offsets``: at
    which element of its memory each tensor began that the user gave.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arguments: tuple[Argument, ...]
    sizes: dict[str, int]
    offsets: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def tensors(self) -> dict[str, torch.Tensor]:
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return {a.name: leaves[a.leaf] for a in self.arguments}

    def with_tensors(
        self, tensors: Mapping[str, torch.Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other tensors, by input name; what is not given stays."""
        leaves, structure = pytree.tree_flatten((self.args, self.kwargs))
        for argument in self.arguments:
            if argument.name in tensors:
                leaves[argument.leaf] = tensors[argument.name]
        args, kwargs = pytree.tree_unflatten(leaves, structure)
        return args, kwargs

    def fresh(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments in memory of their own (a forward() may write to them)."""
        return self.with_tensors({n: t.detach().clone() for n, t in self.tensors().items()})

    def fresh_tensors(self) -> list[torch.Tensor]:
        """Clones of the tensors, in the program's order."""
        return [t.detach().clone() for t in self.tensors().values()]

    def dynamic_shapes(self, module: torch.nn.Module, torch_dims: Mapping[str, Any]) -> Any:
        """What ``torch.export.export`` takes, with the given ``torch.export.Dim`` objects."""
        shapes: Any = torch.export.ShapesCollection()  # type: ignore[no-untyped-call]
        tensors = self.tensors()
        for argument in self.arguments:
            dynamic = {
                i: torch_extent(e, torch_dims)
                for i, e in enumerate(argument.spec.shape)
                if e.dim is not None
            }
            if dynamic:
                shapes[tensors[argument.name]] = dynamic
        if not len(shapes):
            return None
        return shapes.dynamic_shapes(module, self.args, self.kwargs)


def torch_extent(extent: Extent, torch_dims: Mapping[str, Any]) -> Any:
    dim = torch_dims[str(extent.dim)]
    scaled = dim if extent.scale == 1 else extent.scale * dim
    return scaled if extent.offset == 0 else scaled + extent.offset


def from_specs(
    module: torch.nn.Module,
    specs: Mapping[str, TensorSpec],
    sizes: Mapping[str, int],
    label: str,
    seed: int = 0,
) -> Call:
    """A call with sample tensors; ``specs`` are by forward()'s argument names.

    A name may go into a structure: ``cache[0]`` makes a list, ``state.h`` a dict.
    """
    tensors = make_inputs(specs, sizes, seed)
    values: dict[str, Any] = {}
    for path, tensor in tensors.items():
        _insert(values, _parse_path(path, label), tensor, path, label)
    values = {name: _lists(value, name, label) for name, value in values.items()}
    args, kwargs = _bind(module, values, label)
    return _call(module, args, kwargs, dict(specs), dict(sizes), label)


def from_sample(
    module: torch.nn.Module,
    sample: Any,
    patterns: Mapping[str, TensorSpec],
    dims: Dims,
    label: str,
) -> Call:
    """A call with what ``sample_inputs`` returned; ``patterns`` name the dims of its tensors."""
    args, kwargs = _split(sample, label)
    try:
        inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as e:
        raise DriverError(
            f"{label}: sample_inputs: forward{inspect.signature(module.forward)} does not take "
            f"what it returned: {e}"
        ) from None
    call = _call(module, args, _in_signature_order(module, kwargs), dict(patterns), {}, label)
    return dataclasses.replace(call, sizes=_sizes(call, patterns, dims, label))


def call_sample_inputs(
    function: Callable[..., Any], sizes: Mapping[str, int], override: bool
) -> Any:
    """Calls the user's function; its parameters that are named like dims are passed sizes.

    Without ``override`` only the ones that have no default.
    """
    parameters = inspect.signature(function).parameters.values()
    return function(
        **{
            p.name: sizes[p.name]
            for p in parameters
            if p.name in sizes and (override or p.default is p.empty)
        }
    )


def name_keywords(module: torch.nn.Module, call: Call) -> None:
    """Gives forward() a signature that lists the keywords that go into its ``**kwargs``.

    torch.export 2.13 can't tie dims to tensors that arrive in ``**kwargs``.
    """
    forward = module.forward
    signature = inspect.signature(forward)
    extra = [name for name in call.kwargs if name not in signature.parameters]
    if not extra:
        return
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    parameters += [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in extra]

    def forward_with_names(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    forward_with_names.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters
    )
    module.forward = forward_with_names


def _call(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    specs: dict[str, TensorSpec],
    sizes: dict[str, int],
    label: str,
) -> Call:
    args, kwargs = _distinct((args, kwargs))
    flat, _ = pytree.tree_flatten_with_path((args, kwargs))
    positional = _positional_names(module, len(args))
    places = []
    for leaf, (keys, value) in enumerate(flat):
        if not isinstance(value, torch.Tensor):
            continue
        # keys: (args or kwargs, position or keyword, path inside of the argument)
        side, place, inside = naming.key(keys[0]), naming.key(keys[1]), keys[2:]
        path = [*(positional[int(place)] if side == 0 else [place]), *inside]
        places.append((leaf, path, value))
    names = naming.input_names([path for _, path, _ in places])
    arguments = []
    for name, (leaf, path, value) in zip(names, places):
        text = naming.path_text(path)
        spec = specs.pop(text, None)
        arguments.append(Argument(name, text, leaf, _checked(spec, value, text, label)))
    if specs:
        paths = [naming.path_text(path) for _, path, _ in places]
        unknown = next(iter(specs))
        raise DriverError(
            f'{label}: inputs["{unknown}"]: no tensor has this path{did_you_mean(unknown, paths)}. '
            f"Tensors: {listed(paths)}."
        )
    return Call(args, kwargs, tuple(arguments), sizes)


def _checked(spec: TensorSpec | None, value: torch.Tensor, path: str, label: str) -> TensorSpec:
    """The tensor's spec; one without is static."""
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise DriverError(
            f'{label}: input "{path}" is {dtype}, which is not supported. '
            f"Supported: {listed(DTYPES)}."
        )
    if spec is None:
        return TensorSpec(dtype, tuple(Extent(0, None, n) for n in value.shape))
    where = f'{label}: inputs["{path}"]'
    if spec.dtype != dtype:
        raise DriverError(f"{where}: the spec says {spec.dtype}, the sample is {dtype}")
    if len(spec.shape) != value.dim():
        raise DriverError(
            f"{where}: the spec has {len(spec.shape)} dimensions, the sample {value.dim()} "
            f"({list(value.shape)})"
        )
    for i, (extent, size) in enumerate(zip(spec.shape, value.shape)):
        if extent.dim is None and extent.offset != size:
            raise DriverError(f"{where}: dim {i} is {extent.offset}, the sample has {size}")
    return spec


def _sizes(
    call: Call, patterns: Mapping[str, TensorSpec], dims: Dims, label: str
) -> dict[str, int]:
    """The dims' sizes in a sample, each the same everywhere and in its range."""
    sizes: dict[str, int] = {}
    seen: dict[str, str] = {}
    tensors = call.tensors()
    for argument in call.arguments:
        for i, extent in enumerate(argument.spec.shape):
            if extent.dim is None:
                continue
            name = extent.dim
            size = tensors[argument.name].shape[i]
            where = f'{label}: sample_inputs: "{argument.path}", dim {i}'
            low, high = dims.range(extent)
            if not low <= size <= high:
                raise DriverError(f"{where} ({extent}) is {size}, must be in {low}..{high}")
            value, rest = divmod(size - extent.offset, extent.scale)
            if rest:
                raise DriverError(f"{where} is {size}, which is no value of {extent}")
            if sizes.setdefault(name, value) != value:
                raise DriverError(
                    f"{where}: {name} is {value} here, and {sizes[name]} in {seen[name]}"
                )
            seen.setdefault(name, f'"{argument.path}", dim {i}')
            if size in (0, 1):
                raise DriverError(
                    f"{where} ({extent}) is {size}: torch.export takes a size of 0 or 1 for a "
                    f"constant. Return a sample with another size; {low}..{high} stays the range."
                )
    return sizes


def _split(sample: Any, label: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
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


def _bind(
    module: torch.nn.Module, values: dict[str, Any], label: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments as far as they are contiguous in the signature, else keywords."""
    signature = inspect.signature(module.forward)
    parameters = signature.parameters.values()
    shown = f"forward{signature}"
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    positional_only = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    unknown = [n for n in values if n not in [*named, *positional_only]]
    if unknown and not takes_any:
        raise DriverError(
            f'{label}: inputs: forward() has no argument "{unknown[0]}"'
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
            f"{label}: inputs: forward() needs {listed(missing)}, which inputs does not give.\n"
            f'  {shown}\n  Add for example "{missing[0]}": "float32[1, 8]".'
        )
    args: list[Any] = []
    for p in parameters:
        if p.name not in values or p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            break
        args.append(values.pop(p.name))
    return tuple(args), _in_signature_order(module, values)


def _in_signature_order(module: torch.nn.Module, kwargs: dict[str, Any]) -> dict[str, Any]:
    order = list(inspect.signature(module.forward).parameters)
    known = [n for n in order if n in kwargs]
    return {n: kwargs[n] for n in [*known, *(k for k in kwargs if k not in order)]}


def _positional_names(module: torch.nn.Module, count: int) -> list[list[Any]]:
    names: list[list[Any]] = []
    for p in inspect.signature(module.forward).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            names += [[p.name, i] for i in range(count - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append([p.name])
    return names[:count]


def _distinct(arguments: tuple[Any, Any]) -> tuple[Any, Any]:
    """Clones tensors that are passed twice: each is an input of its own."""
    leaves, structure = pytree.tree_flatten(arguments)
    seen: set[int] = set()
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            if id(leaf) in seen:
                leaves[i] = leaf.clone()
            seen.add(id(leaf))
    args, kwargs = pytree.tree_unflatten(leaves, structure)
    return args, kwargs


def _parse_path(text: str, label: str) -> list[str | int]:
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        match = _PATH_PART.match(text, position)
        if match is None or (not parts and (match["name"] is None or text[0] == ".")):
            raise DriverError(
                f'{label}: inputs: "{text}" is no argument\'s name, nor a path such as '
                '"cache[0]" or "state.h"'
            )
        index = match["index"]
        parts.append(int(index) if index is not None else (match["name"] or match["key"]))
        position = match.end()
    if not parts:
        raise DriverError(f"{label}: inputs: an empty name")
    return parts


def _insert(
    values: dict[Any, Any], parts: Sequence[str | int], tensor: torch.Tensor, path: str, label: str
) -> None:
    for part in parts[:-1]:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise DriverError(f'{label}: inputs["{path}"]: a part of this path is a tensor itself')
    if parts[-1] in values:
        raise DriverError(f'{label}: inputs["{path}"]: this path is given twice')
    values[parts[-1]] = tensor


def _lists(value: Any, path: str, label: str) -> Any:
    """Dicts with the keys 0..n-1 become lists."""
    if not isinstance(value, dict):
        return value
    items = {k: _lists(v, f"{path}[{k}]", label) for k, v in value.items()}
    if not any(isinstance(k, int) for k in items):
        return items
    if set(items) != set(range(len(items))):
        raise DriverError(
            f'{label}: inputs: the entries of "{path}" must be {path}[0] to '
            f"{path}[{len(items) - 1}], got {listed(map(str, items))}"
        )
    return [items[i] for i in range(len(items))]
