"""What all generated files say about a model, worked out once from the manifest."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import cpp_conditions, names
from aoti_driver.contract import conditions, manifest, polynomials
from aoti_driver.packing import packed_format

# torch.dtype's name -> (DType's enumerator, C++ element type)
CPP_DTYPES = {
    "uint8": ("kUInt8", "std::uint8_t"),
    "int8": ("kInt8", "std::int8_t"),
    "int16": ("kInt16", "std::int16_t"),
    "int32": ("kInt32", "std::int32_t"),
    "int64": ("kInt64", "std::int64_t"),
    "float16": ("kFloat16", "::aoti::Half"),
    "float32": ("kFloat32", "float"),
    "float64": ("kFloat64", "double"),
    "complex64": ("kComplex64", "std::complex<float>"),
    "bool": ("kBool", "bool"),
    "bfloat16": ("kBFloat16", "::aoti::BFloat16"),
}
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
_INT64_MAX = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class Spec:
    """The rule's request: what the generated code is called, and where things lie."""

    namespace: str
    class_name: str
    header: str
    py_module: str
    weights_runfile: str
    embedded: bool
    threads: int

    @staticmethod
    def from_json(text: str) -> Spec:
        data = json.loads(text)
        fields = {field.name for field in dataclasses.fields(Spec)}
        if not isinstance(data, dict) or set(data) != fields:
            raise DriverError(
                f"bindings: the spec must have the fields {', '.join(sorted(fields))}"
            )
        spec = Spec(**data)
        for part in spec.namespace.split("::"):
            names.check_cpp_type(part, "the C++ namespace")
        names.check_cpp_type(spec.class_name, "the C++ class")
        names.check_identifier(spec.py_module, "the Python module")
        if names.python_name(spec.py_module) != spec.py_module:
            raise DriverError(
                f'the Python module "{spec.py_module}" is a keyword; rename the target'
            )
        return spec


@dataclasses.dataclass(frozen=True)
class Extent:
    """A size; ``text`` is how the author of the model says it: the name of a dim where one fits."""

    scale: int
    dim: int
    offset: int
    text: str


@dataclasses.dataclass(frozen=True)
class Dim:
    name: str
    min: int
    max: int
    alias: Extent | None


@dataclasses.dataclass(frozen=True)
class Input:
    name: str
    path: str
    cpp_name: str
    py_name: str
    dtype: str
    sizes: tuple[Extent, ...]
    mutated: bool
    values: tuple[int, int] | None
    # C++ expressions of the strides in ``dims[i]``; None: contiguous.
    strides: tuple[str, ...] | None
    # The dim that a number's value is; -1: none.
    value_dim: int = -1

    @property
    def type_text(self) -> str:
        return f"{self.dtype}[{', '.join(extent.text for extent in self.sizes)}]"


@dataclasses.dataclass(frozen=True)
class Output:
    name: str
    path: str
    cpp_name: str
    py_name: str
    dtype: str
    sizes: tuple[str, ...]

    @property
    def type_text(self) -> str:
        return f"{self.dtype}[{', '.join(self.sizes)}]"


@dataclasses.dataclass(frozen=True)
class Guard:
    """``text`` as people read it; ``cpp``: an expression in ``dims[i]``; ``dims``: which."""

    text: str
    cpp: str
    dims: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Constant:
    weight: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclasses.dataclass(frozen=True)
class Variant:
    isa: str
    program_id: str
    constants: tuple[Constant, ...]


@dataclasses.dataclass(frozen=True)
class Packed:
    weight: int
    kind: str
    name: str
    bytes: int
    only: bool


@dataclasses.dataclass(frozen=True)
class Model:
    spec: Spec
    name: str
    label: str
    torch_version: str
    isa: str
    device: str
    program_id: str
    dims: tuple[Dim, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    weights: tuple[manifest.Constant, ...]
    variants: tuple[Variant, ...]
    packed: tuple[Packed, ...]
    state: tuple[int, ...]
    guards: tuple[Guard, ...] = ()

    @property
    def has_state(self) -> bool:
        return bool(self.state) or any(weight.mutated for weight in self.weights)


def build(spec: Spec, source: manifest.Manifest) -> Model:
    """Works everything out; raises DriverError for what bindings can't express."""
    codegen = source.codegen
    if codegen is None:
        raise DriverError(
            f"{source.label}: the manifest lacks what codegen adds; run codegen first"
        )
    weights = _weights(source, codegen)
    index = {weight.name: i for i, weight in enumerate(weights)}
    dims = _dims(source)
    inputs = tuple(_input(source, item) for item in source.inputs)
    outputs = tuple(_output(source, item) for item in source.outputs)
    where = source.label
    for items, what in ((inputs, "inputs"), (outputs, "outputs")):
        names.check_unique([(i.name, i.cpp_name) for i in items], f"{where}: {what}")
        names.check_unique([(i.name, i.py_name) for i in items], f"{where}: {what}")
    lowest = manifest.Variant(codegen.isa, codegen.program_id, codegen.constants)
    return Model(
        spec=spec,
        name=source.name,
        label=source.label,
        torch_version=source.torch_version,
        isa=codegen.isas,
        device=codegen.device,
        program_id=names.check_identifier(codegen.program_id, f"{where}: the program id"),
        dims=dims,
        inputs=inputs,
        outputs=outputs,
        weights=weights,
        variants=tuple(_variant(v, index, where) for v in (*codegen.variants, lowest)),
        packed=_packed(codegen, weights, index),
        state=tuple(index[name] for name in codegen.state),
        guards=_guards(source),
    )


def _variant(variant: manifest.Variant, index: dict[str, int], where: str) -> Variant:
    constants = []
    for constant in variant.constants:
        if constant.source not in index:
            raise DriverError(
                f'{where}: the program uses "{constant.source}", which has no weights'
            )
        weight = index[constant.source]
        constants.append(
            Constant(weight, constant.dtype, constant.shape, constant.stride, constant.offset)
        )
    program_id = names.check_identifier(variant.program_id, f"{where}: the program id")
    return Variant(variant.isa, program_id, tuple(constants))


def _packed(
    codegen: manifest.Codegen, weights: tuple[manifest.Constant, ...], index: dict[str, int]
) -> tuple[Packed, ...]:
    """What the slim runtime finds in the weights file beside the weights; nothing else reads it."""
    if codegen.shim != "slim":
        return ()
    return tuple(
        Packed(
            index[p.source],
            p.kind,
            p.name,
            packed_format.layout_size(p.kind, weights[index[p.source]].shape, p.options),
            p.only,
        )
        for p in codegen.packed
    )


def _weights(source: manifest.Manifest, codegen: manifest.Codegen) -> tuple[manifest.Constant, ...]:
    """The weights file's tensors; what is lifted to state is written to."""
    known = {constant.name for constant in source.constants}
    for name in codegen.state:
        if name not in known:
            raise DriverError(f'{source.label}: the state "{name}" is not among the weights')
    return tuple(
        dataclasses.replace(constant, mutated=True) if constant.name in codegen.state else constant
        for constant in source.constants
    )


def _free_dims(source: manifest.Manifest) -> dict[str, int]:
    return {dim.name: i for i, dim in enumerate(source.dims) if dim.alias is None}


def _dims(source: manifest.Manifest) -> tuple[Dim, ...]:
    return tuple(
        Dim(
            dim.name,
            dim.min,
            min(dim.max, _INT64_MAX),
            None if dim.alias is None else _plain(source, dim.alias),
        )
        for dim in source.dims
    )


def _guards(source: manifest.Manifest) -> tuple[Guard, ...]:
    index = {dim.name: i for i, dim in enumerate(source.dims)}
    conditions.check_all(source.guards, list(index), source.label)
    variables = {name: f"dims[{i}]" for name, i in index.items()}
    return tuple(
        Guard(
            text,
            cpp_conditions.to_cpp(text, variables),
            tuple(index[name] for name in conditions.mentioned(text)),
        )
        for text in source.guards
    )


def _value_dim(source: manifest.Manifest, item: manifest.Input, where: str) -> int:
    if item.value is None:
        return -1
    index = _free_dims(source).get(item.value)
    if index is None or item.dtype != "int64" or item.shape:
        raise DriverError(f'{where} can\'t be the value of the dim "{item.value}"')
    return index


def _plain(source: manifest.Manifest, extent: manifest.Extent) -> Extent:
    if extent.dim is None:
        return Extent(0, -1, extent.offset, str(extent))
    index = _free_dims(source).get(extent.dim)
    if index is None or extent.scale < 1:
        raise DriverError(
            f'{source.label}: the size "{extent}" is not an increasing function of a free dim'
        )
    return Extent(extent.scale, index, extent.offset, str(extent))


def _named(source: manifest.Manifest, extent: manifest.Extent) -> Extent:
    """Like _plain, but a derived dim that has this extent lends it its name."""
    plain = _plain(source, extent)
    if plain.dim < 0 or (plain.scale == 1 and plain.offset == 0):
        return plain
    for dim in source.dims:
        if dim.alias == extent:
            return dataclasses.replace(plain, text=dim.name)
    return plain


def _input(source: manifest.Manifest, item: manifest.Input) -> Input:
    where = f'{source.label}: input "{item.name}"'
    names.check_identifier(item.name, f"{source.label}: the input")
    return Input(
        name=item.name,
        path=item.path,
        cpp_name=names.cpp_name(item.name),
        py_name=names.python_name(item.name),
        dtype=_dtype(item.dtype, where),
        sizes=tuple(_named(source, extent) for extent in item.shape),
        mutated=item.mutated,
        values=_values(item),
        strides=_strides(source, item, where),
        value_dim=_value_dim(source, item, where),
    )


def _output(source: manifest.Manifest, item: manifest.Output) -> Output:
    names.check_identifier(item.name, f"{source.label}: the output")
    return Output(
        name=item.name,
        path=item.path,
        cpp_name=names.cpp_name(item.name),
        py_name=names.python_field(item.name),
        dtype=_dtype(item.dtype, f'{source.label}: output "{item.name}"'),
        sizes=item.shape,
    )


def _dtype(dtype: str, where: str) -> str:
    if dtype not in CPP_DTYPES:
        raise DriverError(f"{where} has dtype {dtype}; available: {', '.join(CPP_DTYPES)}")
    return dtype


def _values(item: manifest.Input) -> tuple[int, int] | None:
    """The declared range of an integer input; one of floats only says how to sample."""
    if item.values is None or item.dtype not in _INTEGERS:
        return None
    low, high = item.values
    return int(low), int(high)


def _strides(source: manifest.Manifest, item: manifest.Input, where: str) -> tuple[str, ...] | None:
    free = _free_dims(source)
    symbols: dict[str, polynomials.Polynomial] = {name: {(name,): 1} for name in free}
    for dim in source.dims:
        if dim.alias is not None:
            symbols[dim.name] = _polynomial(dim.alias)
    if len(item.stride) != len(item.shape):
        raise DriverError(f"{where} has {len(item.shape)} sizes, but {len(item.stride)} strides")
    strides = [polynomials.parse(text, symbols, f"{where}: stride") for text in item.stride]
    contiguous = polynomials.contiguous_strides([_polynomial(extent) for extent in item.shape])
    # The stride of a dimension with one element is never used.
    pairs = zip(strides, contiguous, item.shape)
    if all(a == b or (e.dim is None and e.offset == 1) for a, b, e in pairs):
        return None
    variables = {name: f"dims[{i}]" for name, i in free.items()}
    return tuple(polynomials.to_cpp(stride, variables) for stride in strides)


def _polynomial(extent: manifest.Extent) -> polynomials.Polynomial:
    offset = polynomials.constant(extent.offset)
    if extent.dim is None:
        return offset
    return polynomials.add({(extent.dim,): extent.scale}, offset)


def cpp_string(text: str) -> str:
    """A C++ string literal of the text in UTF-8."""

    def escape(byte: int) -> str:
        char = chr(byte)
        if char in '"\\':
            return "\\" + char
        # Three octal digits can't swallow a digit that follows.
        return char if 0x20 <= byte < 0x7F else f"\\{byte:03o}"

    return '"' + "".join(escape(byte) for byte in text.encode()) + '"'


def comment_text(text: str) -> str:
    """Text that can stand in a // comment: on one line, without a trailing backslash."""
    return re.sub(r"\s+", " ", text).rstrip("\\")


def substitute(template: str, values: dict[str, Any]) -> str:
    """Replaces ``@NAME@``; every name must be known and every value used."""
    unused = set(values)

    def replace(match: re.Match[str]) -> str:
        unused.discard(match[1])
        return str(values[match[1]])

    result = re.sub(r"@([A-Z_]+)@", replace, template)
    if unused:
        raise KeyError(f"not in the template: {sorted(unused)}")
    return result
