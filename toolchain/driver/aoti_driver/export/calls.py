"""A call of the module: its arguments, and those that vary, with their names and specs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import naming
from aoti_driver.contract.dims import NO_DIMS, Dims
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.polynomials import affine, computed
from aoti_driver.contract.program_parts import FixedArgument
from aoti_driver.contract.size_expr import Number, SizeExpr
from aoti_driver.contract.specs import Literal, TensorSpec
from aoti_driver.export.call_arguments import (
    bind,
    check_number,
    in_signature_order,
    insert,
    method_name,
    number_default,
    parse_path,
    positional_names,
    split_sample,
    with_distinct_tensors,
    with_lists,
)
from aoti_driver.export.samples import make_inputs


@dataclasses.dataclass(frozen=True)
class Argument:
    """A tensor or number among the arguments: its name, its path, and its index among all leaves.

    default: a number's default in the signature, if it is in its range.
    """

    name: str
    path: str
    leaf: int
    spec: TensorSpec
    default: float | None = None


@dataclasses.dataclass(frozen=True)
class Call:
    """Arguments for ``forward()``, and the sizes of the dims in them.

    ``arguments`` are in the order of the exported program's inputs; the numbers among them are
    Python numbers here. ``offsets``: the element of its memory at which each tensor that the user
    gave begins. ``dims``: the declared dims. ``fixed``: the values among the declared arguments.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arguments: tuple[Argument, ...]
    sizes: dict[str, int]
    offsets: Mapping[str, int] = dataclasses.field(default_factory=dict)
    dims: Dims = NO_DIMS
    fixed: tuple[FixedArgument, ...] = ()

    def tensors(self) -> dict[str, torch.Tensor]:
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return {a.name: leaves[a.leaf] for a in self.arguments if a.spec.number is None}

    def inputs(self) -> dict[str, torch.Tensor]:
        """What the compiled program takes: numbers are tensors of rank 0."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return {
            a.name: leaves[a.leaf] if a.spec.number is None else _number_tensor(leaves[a.leaf], a)
            for a in self.arguments
        }

    def with_values(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with some tensors and numbers replaced, by input name."""
        leaves, structure = pytree.tree_flatten((self.args, self.kwargs))
        for argument in self.arguments:
            if argument.name in values:
                leaves[argument.leaf] = values[argument.name]
        args, kwargs = pytree.tree_unflatten(leaves, structure)
        return args, kwargs

    def fresh(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments in new memory (a forward() may write to them)."""
        return self.with_values(self._fresh_tensors())

    def fresh_for_program(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """As fresh(), for the exported program, which takes a float as a tensor."""
        tensors = self.inputs()
        floats = {a.name: tensors[a.name] for a in self.arguments if a.spec.number == "float"}
        return self.with_values({**self._fresh_tensors(), **floats})

    def _fresh_tensors(self) -> dict[str, torch.Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self.tensors().items()}

    def dynamic_shapes(self, module: torch.nn.Module, torch_dims: Mapping[str, Any]) -> Any:
        """The ``dynamic_shapes`` of ``torch.export.export``, with the given ``torch.export.Dim``
        objects.
        """
        shapes: Any = torch.export.ShapesCollection()  # type: ignore[no-untyped-call]
        # The collection knows tensors by identity; numbers have none of their own.
        tensors = {
            a.name: torch.empty(0) for a in self.arguments if a.spec.number is not None
        } | self.tensors()
        for argument in self.arguments:
            if argument.spec.value is not None:
                shapes[tensors[argument.name]] = torch_dims[argument.spec.value]
            dynamic = {
                i: torch_size(size, torch_dims)
                for i, size in enumerate(argument.spec.shape)
                if size.dims
            }
            if dynamic:
                shapes[tensors[argument.name]] = dynamic
        if not len(shapes):
            return None
        return shapes.dynamic_shapes(module, *self.with_values(tensors))


def torch_size(size: SizeExpr, torch_dims: Mapping[str, Any]) -> Any:
    """A sum or quotient is left to torch.export, which has no words for it, but finds it."""
    if computed(size):
        return torch.export.Dim.AUTO
    scale, dim, offset = affine(size)
    scaled = torch_dims[str(dim)] if scale == 1 else scale * torch_dims[str(dim)]
    return scaled if offset == 0 else scaled + offset


def from_specs(
    module: torch.nn.Module,
    specs: Mapping[str, TensorSpec],
    literals: Mapping[str, Literal],
    sizes: Mapping[str, int],
    label: str,
    seed: int = 0,
) -> Call:
    """A call with sample tensors; ``specs`` and ``literals`` are by forward()'s argument names.

    A name may be a path into a structure: ``cache[0]`` makes a list, ``state.h`` a dict.
    """
    samples: dict[str, Any] = dict(make_inputs(specs, sizes, seed))
    for path, spec in specs.items():
        if spec.number is not None:
            samples[path] = samples[path].item() if spec.value is None else sizes[spec.value]
    values: dict[str, Any] = {}
    for path, value in {**samples, **literals}.items():
        insert(values, parse_path(path, label), value, path, label)
    values = {name: with_lists(value, name, label) for name, value in values.items()}
    args, kwargs = bind(module, values, label)
    call = _call(module, args, kwargs, dict(specs), dict(sizes), label)
    return dataclasses.replace(call, fixed=_fixed(module, call, literals))


def _path(keys: Sequence[Any], positional: Sequence[list[Any]]) -> list[Any]:
    """The path of a leaf in forward()'s arguments; keys: args or kwargs, the position or keyword,
    the path within the argument.
    """
    side, place, inside = naming.key(keys[0]), naming.key(keys[1]), keys[2:]
    return [*(positional[int(place)] if side == 0 else [place]), *inside]


def _fixed(
    module: torch.nn.Module, call: Call, literals: Mapping[str, Literal]
) -> tuple[FixedArgument, ...]:
    """The literals in the order of the arguments."""
    parameters = inspect.signature(module.forward).parameters
    positional = positional_names(module, len(call.args))
    flat, _ = pytree.tree_flatten_with_path((call.args, call.kwargs))
    found: dict[str, FixedArgument] = {}
    for leaf, (keys, _) in enumerate(flat):
        path = _path(keys, positional)
        for length in range(1, len(path) + 1):
            text = naming.path_text(path[:length])
            if text not in literals or text in found:
                continue
            value, parameter = literals[text], parameters.get(text)
            found[text] = FixedArgument(
                name=naming.input_names([path[:length]])[0],
                path=text,
                value=repr(value),
                before=sum(argument.leaf < leaf for argument in call.arguments),
                default=parameter is not None
                and type(parameter.default) is type(value)
                and parameter.default == value,
            )
    return tuple(found.values())


def from_sample(
    module: torch.nn.Module,
    sample: Any,
    patterns: Mapping[str, TensorSpec],
    dims: Dims,
    label: str,
) -> Call:
    """A call with the result of ``sample_inputs``; ``patterns`` name the dims of its tensors."""
    args, kwargs = split_sample(sample, label)
    try:
        inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as e:
        raise DriverError(
            f"{label}: sample_inputs: {method_name(module)}{inspect.signature(module.forward)} "
            f"does not take what it returned: {e}"
        ) from None
    call = _call(module, args, in_signature_order(module, kwargs), dict(patterns), {}, label)
    return dataclasses.replace(call, sizes=_sizes(call, patterns, dims, label))


def call_sample_inputs(
    function: Callable[..., Any],
    sizes: Mapping[str, int],
    fixed: Mapping[str, int],
    override: bool,
) -> Any:
    """Calls the user's function; parameters that are named like dims get sizes.

    fixed: the dims that have one size. Without ``override``, of the other dims only those get one
    whose parameters have no default.
    """
    parameters = inspect.signature(function).parameters.values()
    chosen = {
        p.name: sizes[p.name]
        for p in parameters
        if p.name in sizes and (override or p.default is p.empty)
    }
    return function(**chosen, **{p.name: fixed[p.name] for p in parameters if p.name in fixed})


def name_keywords(module: torch.nn.Module, call: Call) -> None:
    """Gives forward() a signature that lists the keyword arguments for its ``**kwargs``.

    torch.export 2.13 can't relate dims of tensors that are passed in ``**kwargs``.
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


def take_floats(module: torch.nn.Module, call: Call) -> None:
    """Gives the module a forward() that takes floats as tensors, as the program does.

    Their ``item()`` stays a Python number to everything that the model does with it: it doesn't
    take part in type promotion, as a tensor would.
    """
    floats = [a.leaf for a in call.arguments if a.spec.number == "float"]
    if not floats:
        return
    forward = module.forward

    def forward_with_floats(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.tree_flatten((args, kwargs))
        for leaf in floats:
            leaves[leaf] = leaves[leaf].item()
        args, kwargs = pytree.tree_unflatten(leaves, structure)
        return forward(*args, **kwargs)

    forward_with_floats.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    module.forward = forward_with_floats


def _number_tensor(value: float, argument: Argument) -> torch.Tensor:
    return torch.tensor(value, dtype=getattr(torch, argument.spec.dtype))


def _call(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    specs: dict[str, TensorSpec],
    sizes: dict[str, int],
    label: str,
) -> Call:
    args, kwargs = with_distinct_tensors((args, kwargs))
    flat, _ = pytree.tree_flatten_with_path((args, kwargs))
    positional = positional_names(module, len(args))
    places = []
    for leaf, (keys, value) in enumerate(flat):
        path = _path(keys, positional)
        spec = specs.get(naming.path_text(path))
        if isinstance(value, torch.Tensor) or (spec is not None and spec.number is not None):
            places.append((leaf, path, value))
    names = naming.input_names([path for _, path, _ in places])
    arguments = []
    for name, (leaf, path, value) in zip(names, places):
        text = naming.path_text(path)
        spec = specs.pop(text, None)
        if spec is not None and spec.number is not None:
            check_number(value, spec, f'{label}: inputs["{text}"]')
            default = number_default(module, text, spec)
            arguments.append(Argument(name, text, leaf, spec, default))
        else:
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
    """The tensor's spec; without one, the sizes of the tensor are static."""
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise DriverError(
            f'{label}: input "{path}" is {dtype}, which is not supported. '
            f"Supported: {listed(DTYPES)}."
        )
    if spec is None:
        return TensorSpec(dtype, tuple(map(Number, value.shape)))
    where = f'{label}: inputs["{path}"]'
    if spec.dtype != dtype:
        raise DriverError(f"{where}: the spec says {spec.dtype}, the sample is {dtype}")
    if len(spec.shape) != value.dim():
        raise DriverError(
            f"{where}: the spec has {len(spec.shape)} dimensions, the sample {value.dim()} "
            f"({list(value.shape)})"
        )
    for i, (declared, size) in enumerate(zip(spec.shape, value.shape)):
        if not declared.dims and declared.evaluate({}) != size:
            raise DriverError(f"{where}: dim {i} is {declared}, the sample has {size}")
    return spec


def _sizes(
    call: Call, patterns: Mapping[str, TensorSpec], dims: Dims, label: str
) -> dict[str, int]:
    """The dims' sizes in a sample; checks that each is the same everywhere and in its range."""
    sizes: dict[str, int] = {}
    seen: dict[str, str] = {}
    follow: list[tuple[str, SizeExpr, int]] = []
    tensors = call.tensors()
    leaves = pytree.tree_leaves((call.args, call.kwargs))
    for argument in call.arguments:
        if argument.spec.value is not None:
            sizes[argument.spec.value] = leaves[argument.leaf]
        for i, declared in enumerate(argument.spec.shape):
            if computed(declared):
                where = f'{label}: sample_inputs: "{argument.path}", dim {i}'
                follow.append((where, declared, tensors[argument.name].shape[i]))
                continue
            scale, name, offset = affine(declared)
            if name is None:
                continue
            size = tensors[argument.name].shape[i]
            where = f'{label}: sample_inputs: "{argument.path}", dim {i}'
            low, high = dims.range(declared)
            if not low <= size <= high:
                raise DriverError(f"{where} ({declared}) is {size}, must be in {low}..{high}")
            value, rest = divmod(size - offset, scale)
            if rest:
                raise DriverError(f"{where} is {size}, which is not a value of {declared}")
            if sizes.setdefault(name, value) != value:
                raise DriverError(
                    f"{where}: {name} is {value} here, and {sizes[name]} in {seen[name]}"
                )
            seen.setdefault(name, f'"{argument.path}", dim {i}')
            if size in (0, 1):
                raise DriverError(
                    f"{where} ({declared}) is {size}: torch.export takes a size of 0 or 1 for a "
                    f"constant. Return a sample with another size; {low}..{high} stays the range."
                )
    for where, declared, size in follow:
        if size != declared.evaluate(sizes):
            raise DriverError(
                f"{where} ({declared}) is {size}, must be {declared.evaluate(sizes)}, because "
                f"{listed(f'{name} is {sizes[name]}' for name in declared.dims)}"
            )
    return sizes
