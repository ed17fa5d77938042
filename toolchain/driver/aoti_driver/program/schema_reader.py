"""Reads JSON as the dataclasses of torch's schema of programs.

torch's own reader asks for a class's type hints again for each of its objects: in a language model
of 30 layers that is a quarter of the time to load the program. Here each type is looked at once.
Keys that the schema does not have are passed over, as torch does.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any

from torch._export.serde import schema
from torch._export.serde.union import _Union

_Reader = Callable[[Any], Any]


def read_program(data: dict[str, Any]) -> schema.ExportedProgram:
    """The program that `json.loads` read as `data`. Shapes, dtypes and names are not checked."""
    program: schema.ExportedProgram = _read_fields(schema.ExportedProgram, data)
    return program


@functools.cache
def _reader(kind: Any) -> _Reader:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _reader(arguments[0])
    if origin in (typing.Union, types.UnionType):
        (inner,) = [_reader(one) for one in arguments if one is not types.NoneType]
        return lambda data: None if data is None else inner(data)
    if origin is list:
        return lambda data: [_reader(arguments[0])(item) for item in data]
    if origin is dict:
        return lambda data: {key: _reader(arguments[1])(item) for key, item in data.items()}
    if isinstance(kind, type) and issubclass(kind, _Union):
        return functools.partial(_read_union, kind)
    if dataclasses.is_dataclass(kind):
        return functools.partial(_read_fields, kind)
    return float if kind is float else _as_it_is


def _as_it_is(data: Any) -> Any:
    return data


@functools.cache
def _field_readers(kind: Any) -> dict[str, _Reader]:
    hints = typing.get_type_hints(kind, globalns=vars(schema), include_extras=True)
    return {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)}


def _read_union(kind: Any, data: dict[str, Any]) -> Any:
    ((name, value),) = data.items()
    return kind.create(**{name: _field_readers(kind)[name](value)})


def _read_fields(kind: Any, data: dict[str, Any]) -> Any:
    readers = _field_readers(kind)
    return kind(**{name: read(data[name]) for name, read in readers.items() if name in data})
