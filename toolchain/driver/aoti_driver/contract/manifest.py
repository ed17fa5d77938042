"""The manifest: the one contract between export, codegen, bindings, runtime and tests.

A manifest is a JSON document (UTF-8, two-space indent, sorted keys, trailing newline). It is
written by ``export`` (everything but :class:`Codegen`) and completed by ``codegen``. This module
needs the standard library only, so that steps which do not need torch do not import it.

Symbolic extents are affine in one dim: ``scale * dim + offset`` (see :class:`Extent`); torch.export
admits nothing else for inputs. Output extents may be any expression; :class:`Output` keeps them as
text.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, TypeVar

SCHEMA_VERSION = 1


def public_version(torch_version: str) -> str:
    """The version without the name of the build: `2.13.0` for `2.13.0+cpu`."""
    return torch_version.split("+")[0]


class ManifestError(ValueError):
    """The document is not a manifest of this schema; the message says which field and why."""


@dataclasses.dataclass(frozen=True)
class Extent:
    """The size of one dimension: ``scale * dim + offset``; ``dim`` is None for a static size.

    A static size ``n`` is ``Extent(scale=0, dim=None, offset=n)``.
    """

    scale: int
    dim: str | None
    offset: int

    def __str__(self) -> str:
        if self.dim is None:
            return str(self.offset)
        text = self.dim if self.scale == 1 else f"{self.scale}*{self.dim}"
        if self.offset > 0:
            return f"{text} + {self.offset}"
        return f"{text} - {-self.offset}" if self.offset < 0 else text

    def evaluate(self, dims: dict[str, int]) -> int:
        """The size for the given values of the dims."""
        return self.offset if self.dim is None else self.scale * dims[self.dim] + self.offset


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dynamic dim: a free one has a range (both ends included), a derived one also its extent.

    ``alias`` is set for a derived dim such as ``seq = 2*half``: its extent in a free dim. The
    dims in ``Extent.dim`` of inputs and outputs are always free ones.
    """

    name: str
    min: int
    max: int
    alias: Extent | None = None


@dataclasses.dataclass(frozen=True)
class Input:
    """One tensor that the caller passes, in the order in which the compiled program takes them.

    name: an identifier, unique in the model ("tokens", "past_key_values_0"); ``path`` is the
      place in forward()'s arguments as pytree text ("tokens", "past_key_values[0]").
    stride: elements, by dimension; the program was compiled for exactly these (an entry is an
      extent expression's text in the dims, e.g. "seq" or "64*seq" or "1").
    mutated: the program writes to it in place; the caller's memory holds the new value.
    values: what a call may pass (lowest, highest, both included): the range that the spec gave, cut
      to the size of the table that the input is an index of; None where neither is known.
    value: of a number that the program takes as a size is (``x[:n]``): the dim that it is.
    """

    name: str
    path: str
    dtype: str
    shape: tuple[Extent, ...]
    stride: tuple[str, ...]
    mutated: bool = False
    values: tuple[float, float] | None = None
    value: str | None = None


@dataclasses.dataclass(frozen=True)
class Output:
    """One tensor that the program returns, in order. ``shape``: expressions in the free dims."""

    name: str
    path: str
    dtype: str
    shape: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Constant:
    """A parameter, buffer or constant tensor of the program, stored in the weights file.

    name: its key in the safetensors file (the fully qualified name; for tied tensors the first
      one's, by the program's order). Every key is stored contiguous.
    mutated: a buffer that the program writes to: each loaded model owns a writable copy.
    """

    name: str
    kind: str  # "parameter", "buffer" or "constant"
    dtype: str
    shape: tuple[int, ...]
    mutated: bool = False


@dataclasses.dataclass(frozen=True)
class ProgramConstant:
    """A constant as the generated C++ asks for it, in the order of its constants table.

    symbol: the generated code's name. source: :attr:`Constant.name`. The view of the stored,
    contiguous tensor that the code expects: shape, stride (elements) and storage offset.
    """

    symbol: str
    source: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0


@dataclasses.dataclass(frozen=True)
class Shim:
    """A function outside of the generated code that it calls.

    name: ``aoti_torch_cpu_topk``, or ``aten::_unique2`` / ``aten::roll.overload`` for an operator
      that is called through ``aoti_torch_call_dispatcher``.
    operators: the ATen operators that are written with it ("aten.topk.default"); none for functions
      that merely handle tensors.
    nodes: the nodes of the frozen graph that come down to it.
    dtypes: those of the tensors that it is called with and returns, an entry for each different
      call, such as "float32,int64->float32"; none where they are not known.
    """

    name: str
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Packed:
    """A constant that an operator reads in another layout, which the build makes of the weights.

    source: :attr:`Constant.name`. kind: the layout, see aoti_driver.packing. options: what the
    layout depends on beside the tensor (the groups of a convolution). only: nothing reads the
    tensor in its stored layout.
    """

    source: str
    kind: str
    options: dict[str, int]
    only: bool

    @property
    def name(self) -> str:
        """The packed tensor's key in the weights file."""
        return f"{self.source}#{self.kind}"


@dataclasses.dataclass(frozen=True)
class Variant:
    """The same program for another instruction set: see :class:`Codegen` for the fields."""

    isa: str
    program_id: str
    constants: tuple[ProgramConstant, ...]


@dataclasses.dataclass(frozen=True)
class Codegen:
    """What the codegen step adds.

    program_id: the identifier that makes the model's C++ names unique, e.g. "models_encoder".
    shims: the functions that the generated code calls, sorted by name.
    shim: the library that has them for this program, "slim" or "libtorch"; empty until chosen.
    packed: constants that the slim runtime wants in other layouts too.
    state: names of mutated buffers that were lifted to hidden trailing program inputs, in order;
      the runtime passes its own memory for them. Empty for a stateless model.
    variants: the program for higher instruction sets than ``isa``, the highest first; the runtime
      takes the first that the CPU has.
    """

    program_id: str
    device: str
    isa: str
    options: dict[str, str]
    shims: tuple[Shim, ...]
    constants: tuple[ProgramConstant, ...]
    state: tuple[str, ...] = ()
    packed: tuple[Packed, ...] = ()
    shim: str = ""
    variants: tuple[Variant, ...] = ()

    @property
    def isas(self) -> str:
        """All instruction sets, the lowest first, such as "x86-64-v3, x86-64-v4"."""
        return ", ".join([self.isa, *(variant.isa for variant in reversed(self.variants))])


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One frozen program. See the field types for the parts.

    guards: what the sizes of a call must fulfil beside their ranges, for the program to be right:
      conditions in the dims, as ``conditions.py`` reads them.
    """

    label: str
    name: str
    torch_version: str
    strict: bool
    dims: tuple[Dim, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Constant, ...]
    graph_sha256: str
    codegen: Codegen | None = None
    guards: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"

    @staticmethod
    def from_json(text: str) -> Manifest:
        """Parses a manifest; raises :class:`ManifestError` that names the offending field."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as e:
            raise ManifestError(f"not a manifest: {e}") from e
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION:
            raise ManifestError(
                f"manifest has schema_version {version!r}, this rules_aoti reads {SCHEMA_VERSION}"
            )
        return _build(Manifest, data, "manifest")


_T = TypeVar("_T")


def _build(cls: type[_T], data: Any, where: str) -> _T:
    if not isinstance(data, dict):
        raise ManifestError(f"{where}: expected an object, got {type(data).__name__}")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if unknown := sorted(set(data) - set(fields)):
        raise ManifestError(f"{where}: unknown field {unknown[0]!r}")
    values = {}
    for name, field in fields.items():
        if name not in data:
            if field.default is dataclasses.MISSING:
                raise ManifestError(f"{where}: missing field {name!r}")
            continue
        values[name] = _convert(hints[name], data[name], f"{where}.{name}")
    return cls(**values)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return _convert(next(a for a in args if a is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ManifestError(f"{where}: expected a list, got {type(value).__name__}")
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
        if len(kinds) != len(value):
            raise ManifestError(f"{where}: expected {len(kinds)} entries, got {len(value)}")
        return tuple(_convert(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value)))
    if origin is dict:
        if not isinstance(value, dict):
            raise ManifestError(f"{where}: expected an object, got {type(value).__name__}")
        return {k: _convert(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return _build(typing.cast(type, hint), value, where)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise ManifestError(f"{where}: expected {hint.__name__}, got {type(value).__name__}")
    return value
