"""Computes the data about a model for generated files from its manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import names, results
from aoti_driver.bindings.cpp_sizes import normal_forms
from aoti_driver.bindings.model import (
    Input,
    Model,
    Output,
    Spec,
)
from aoti_driver.contract import code_parts, conditions, polynomials, program_parts
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.size_expr import Name, Number, SizeExpr

_INT64_MAX = 2**63 - 1
_NUMBERS = {"float": "float64", "int": "int64", "bool": "bool"}


def build(spec: Spec, library: LibraryManifest) -> Model:
    """Computes everything; raises DriverError for models that bindings can't express."""
    source = library.program
    sizes = [size for item in source.inputs for size in item.shape]
    for size in _aliases(source):
        _check_size(source, size)
    for size in sizes:
        if polynomials.computed(size):
            _check_computed(source, size, sizes)
        else:
            _check_size(source, size)
    conditions.check_all(source.guards, [dim.name for dim in source.dims], source.label)
    results.check(source)
    inputs = inputs_of(source)
    outputs = tuple(_output(source, item) for item in source.outputs)
    where = source.label
    for items, what in ((inputs, "inputs"), (outputs, "outputs")):
        names.check_unique([(i.tensor.name, i.cpp_name) for i in items], f"{where}: {what}")
        names.check_unique([(i.tensor.name, i.py_name) for i in items], f"{where}: {what}")
    constants = source.result.constants() if source.result is not None else []
    fields = [(item.tensor.name, item.cpp_name) for item in outputs]
    fields += [(node.name, names.cpp_name(node.name)) for node in constants]
    names.check_unique(fields, f"{where}: results")
    model = Model(
        spec=spec,
        library=library,
        dims=tuple(dataclasses.replace(d, max=min(d.max, _INT64_MAX)) for d in source.dims),
        inputs=inputs,
        outputs=outputs,
        weights=source.constants,
        packed=library.codegen.packed if library.shim == "slim" else (),
    )
    for variant in model.variants:
        _check_variant(variant, source)
    if model.has_state and spec.class_name == "Session":
        raise DriverError(
            f"{source.label}: its C++ class can't be called Session, because the model has state, "
            "and Session is the class of its sessions; rename the target"
        )
    return model


def _check_variant(variant: code_parts.Variant, source: ProgramManifest) -> None:
    names.check_identifier(variant.program_id, f"{source.label}: the program id")
    known = {constant.name for constant in source.constants}
    for constant in variant.constants:
        if constant.source not in known:
            raise DriverError(
                f'{source.label}: the program uses "{constant.source}", which has no weights'
            )


def _free_dims(source: ProgramManifest) -> dict[str, int]:
    return {dim.name: i for i, dim in enumerate(source.dims) if dim.alias is None}


def _aliases(source: ProgramManifest) -> list[SizeExpr]:
    return [dim.alias for dim in source.dims if dim.alias is not None]


def _value_dim(source: ProgramManifest, item: program_parts.Input, where: str) -> int:
    if item.value is None:
        return -1
    index = _free_dims(source).get(item.value)
    if index is None or item.dtype != "int64" or item.shape:
        raise DriverError(f'{where} can\'t be the value of the dim "{item.value}"')
    return index


def _check_size(source: ProgramManifest, size: SizeExpr) -> None:
    """Checks that the runtime can compute the dims from the sizes of inputs."""
    try:
        scale, dim, _ = polynomials.affine(size)
    except DriverError as e:
        raise DriverError(f"{source.label}: {e}") from None
    if dim is not None and (dim not in _free_dims(source) or scale < 1):
        raise DriverError(
            f'{source.label}: the size "{size}" is not an increasing function of a free dim'
        )


def _check_computed(source: ProgramManifest, size: SizeExpr, sizes: Sequence[SizeExpr]) -> None:
    """Checks that the size grows with its dims, and that other sizes give these their values."""
    known = {dim for other in sizes if not polynomials.computed(other) for dim in other.dims}
    known |= {item.value for item in source.inputs if item.value is not None}
    parts = [size, *(quotient.operands[0] for quotient in polynomials.quotients(size))]
    sums = [polynomials.polynomial(part) for part in parts]
    grow = all(len(t) < 2 and (not t or scale > 0) for terms in sums for t, scale in terms.items())
    if not grow or not set(size.dims) <= known:
        raise DriverError(
            f'{source.label}: the size "{size}" is not a sum of multiples and quotients of dims '
            "that other sizes have alone"
        )


def _named(source: ProgramManifest, size: SizeExpr) -> SizeExpr:
    """The derived dim that always has this size, or else the size itself."""
    if isinstance(size, (Number, Name)):
        return size
    equal = (Name(dim.name) for dim in source.dims if dim.alias == size)
    return next(equal, size)


def inputs_of(source: ProgramManifest) -> tuple[Input, ...]:
    return _with_defaults([_input(source, item) for item in source.inputs])


def _with_defaults(inputs: list[Input]) -> tuple[Input, ...]:
    """Keeps the defaults of the last inputs: Python has no required argument after an optional
    one.
    """
    last = len(inputs)
    while last > 0 and inputs[last - 1].tensor.default is not None:
        last -= 1
    return tuple(
        dataclasses.replace(item, default=item.tensor.default) if i >= last else item
        for i, item in enumerate(inputs)
    )


def _input(source: ProgramManifest, item: program_parts.Input) -> Input:
    where = f'{source.label}: input "{item.name}"'
    names.check_identifier(item.name, f"{source.label}: the input")
    _check_dtype(item.dtype, where)
    if item.number is not None and (item.shape or item.dtype != _NUMBERS[item.number]):
        raise DriverError(f"{where} can't be a Python {item.number}")
    return Input(
        tensor=item,
        sizes=tuple(_named(source, size) for size in item.shape),
        strides=_strides(source, item, where),
        value_dim=_value_dim(source, item, where),
    )


def _output(source: ProgramManifest, item: program_parts.Output) -> Output:
    names.check_identifier(item.name, f"{source.label}: the output")
    where = f'{source.label}: output "{item.name}"'
    _check_dtype(item.dtype, where)
    if item.number is not None and (item.shape or item.dtype != _NUMBERS[item.number]):
        raise DriverError(f"{where} can't be a Python {item.number}")
    return Output(item)


def _check_dtype(dtype: str, where: str) -> None:
    if dtype not in DTYPES:
        raise DriverError(f"{where} has dtype {dtype}; available: {', '.join(DTYPES)}")


def _strides(
    source: ProgramManifest, item: program_parts.Input, where: str
) -> tuple[SizeExpr, ...] | None:
    """None for the strides of a contiguous tensor."""
    if len(item.stride) != len(item.shape):
        raise DriverError(f"{where} has {len(item.shape)} sizes, but {len(item.stride)} strides")
    dims = normal_forms(source.dims)
    try:
        strides = [polynomials.polynomial(stride, dims) for stride in item.stride]
    except DriverError as e:
        raise DriverError(f"{where}: stride: {e}") from None
    sizes = [polynomials.polynomial(size) for size in item.shape]
    # The stride of a dimension with one element is never used.
    pairs = zip(strides, polynomials.contiguous_strides(sizes), item.shape)
    if all(a == b or size == Number(1) for a, b, size in pairs):
        return None
    return item.stride
