"""Changes PyTorch: by no other module, and nothing that changes.py doesn't list."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aoti_driver.torch_internals import changes
from aoti_driver.torch_internals.entries import Change

_CHANGES = {change.place: change for change in changes.CHANGES}
_OPTIONS = frozenset(option.place for option in changes.OPTIONS)


def original(place: str) -> Any:
    """What stands at the place."""
    owner, name = _owner(_listed(place, "attribute"))
    return getattr(owner, name)


@contextlib.contextmanager
def replaced(values: Mapping[str, object]) -> Iterator[None]:
    """The values stand at the places inside the block."""
    with contextlib.ExitStack() as stack:
        for place, value in values.items():
            owner, name = _owner(_listed(place, "attribute"))
            before = vars(owner)[name]
            setattr(owner, name, value)
            stack.callback(setattr, owner, name, before)
        yield


@contextlib.contextmanager
def replaced_on(instance: object, place: str, value: object) -> Iterator[None]:
    """The attribute of one object has the value inside the block."""
    name = _attribute(_listed(place, "object"))
    before = getattr(instance, name)
    setattr(instance, name, value)
    try:
        yield
    finally:
        setattr(instance, name, before)


def replace_on(instance: object, place: str, value: object) -> None:
    """The attribute of one object, which nobody else has, gets the value for good."""
    setattr(instance, _attribute(_listed(place, "object")), value)


@contextlib.contextmanager
def entries_kept(place: str, keys: Iterable[object]) -> Iterator[Any]:
    """Yields the table; what the block does to the keys' entries is undone at its end."""
    owner, name = _owner(_listed(place, "table"))
    table, keys = getattr(owner, name), list(keys)
    before = {key: table[key] if isinstance(table, dict) else None for key in keys if key in table}
    try:
        yield table
    finally:
        for key in keys:
            if not isinstance(table, dict):  # a set
                (table.add if key in before else table.discard)(key)
            elif key in before:
                table[key] = before[key]
            else:
                table.pop(key, None)


def add_entry(place: str, key: object, value: object) -> None:
    """The table has the entry from now on."""
    owner, name = _owner(_listed(place, "table"))
    getattr(owner, name)[key] = value


@contextlib.contextmanager
def options(module: str, values: Mapping[str, object]) -> Iterator[None]:
    """The options of a configuration module have the values inside the block."""
    with importlib.import_module(module).patch(listed_options(module, values)):
        yield


def listed_options(module: str, values: Mapping[str, object]) -> dict[str, object]:
    """The values, all of which must be for options that the list has."""
    for name in values:
        if f"{module}:{name}" not in _OPTIONS:
            raise AssertionError(f"{module}:{name} is not listed in torch_internals/changes.py")
    return dict(values)


def _listed(place: str, kind: str) -> Change:
    change = _CHANGES.get(place)
    if change is None or change.kind != kind:
        raise AssertionError(f'torch_internals/changes.py lists no {kind} "{place}"')
    return change


def _owner(change: Change) -> tuple[Any, str]:
    module, _, path = change.place.partition(":")
    owner: Any = importlib.import_module(module)
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    return owner, name


def _attribute(change: Change) -> str:
    return change.place.rpartition(".")[2]
