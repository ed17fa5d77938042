"""Converts JSON to dataclasses and back: every field must be there with the declared type, and no
other field.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from aoti_driver.contract import size_json
from aoti_driver.contract.size_expr import SizeExpr


class RecordError(ValueError):
    """The JSON does not match the dataclass; the message says which field and why."""


_T = TypeVar("_T")

# Metadata of a field that documents lack where it has its default: so a field can be added without
# a change of the documents that exist.
OPTIONAL = {"optional": True}


def plain(value: Any, size: Callable[[SizeExpr], Any] = size_json.to_json) -> Any:
    """A dataclass as dicts and lists; ``size``: what a size becomes."""
    if isinstance(value, SizeExpr):
        return size(value)
    if dataclasses.is_dataclass(value):
        names = sorted(
            field.name
            for field in dataclasses.fields(value)
            if not (_is_optional(field) and getattr(value, field.name) == field.default)
        )
        return {name: plain(getattr(value, name), size) for name in names}
    if isinstance(value, tuple):
        return [plain(item, size) for item in value]
    if isinstance(value, dict):
        return {name: plain(item, size) for name, item in value.items()}
    return value


def build(cls: type[_T], data: Any, where: str) -> _T:
    """An object of a dataclass; ``where`` is the place in the document, for messages.

    The defaults of fields are for code that makes objects; a document must have all fields but
    OPTIONAL ones.
    """
    if not isinstance(data, dict):
        raise RecordError(f"{where}: expected an object, got {type(data).__name__}")
    hints = _hints(cls)  # type: ignore[arg-type]
    known = dataclasses.fields(cls)  # type: ignore[arg-type]
    fields = [f.name for f in known if f.name in data or not _is_optional(f)]
    if unknown := sorted(set(data) - set(fields)):
        raise RecordError(f"{where}: unknown field {unknown[0]!r}")
    for name in fields:
        if name not in data:
            raise RecordError(f"{where}: missing field {name!r}")
    return cls(**{name: _convert(hints[name], data[name], f"{where}.{name}") for name in fields})


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _is_optional(field: dataclasses.Field[Any]) -> bool:
    return bool(field.metadata.get("optional"))


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        options = [a for a in args if a is not type(None)]
        exact = [a for a in options if type(value) is a]
        return _convert((exact or options)[0], value, where)
    if origin is typing.Literal:
        if value not in args:
            expected = " or ".join(f'"{a}"' for a in args)
            raise RecordError(f"{where}: expected {expected}, got {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise RecordError(f"{where}: expected a list, got {type(value).__name__}")
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
        if len(kinds) != len(value):
            raise RecordError(f"{where}: expected {len(kinds)} entries, got {len(value)}")
        return tuple(_convert(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value)))
    if origin is dict:
        if not isinstance(value, dict):
            raise RecordError(f"{where}: expected an object, got {type(value).__name__}")
        return {k: _convert(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if hint is SizeExpr:
        try:
            return size_json.from_json(value)
        except ValueError as e:
            raise RecordError(f"{where}: {e}") from None
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(type, hint), value, where)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise RecordError(f"{where}: expected {hint.__name__}, got {type(value).__name__}")
    return value
