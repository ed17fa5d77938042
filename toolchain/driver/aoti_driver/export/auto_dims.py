"""``dynamic_dims = {"seq": "auto"}``: the export finds a dim's range, relation or single size.

Each attempt takes the dims that the last one's error proposed, as a person would paste them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from aoti_driver.base.errors import DriverError
from aoti_driver.export.building import ExportSpec

T = TypeVar("T")

AUTO = "auto"
# Wide enough to find what a model restricts; a model that takes more sizes is declared by hand.
_START = "1..1024"
# Each attempt but the last restricts a dim, or relates it to another one.
_ATTEMPTS = 12
_SINGLE = re.compile(r"(\d+)\.\.\1")


class DimsError(DriverError):
    """An error that other dims would avoid.

    dims: a value of ``dynamic_dims``; empty where none is known.
    """

    def __init__(self, message: str, dims: Mapping[str, str]) -> None:
        super().__init__(message)
        self.dims = dict(dims)


def resolve(request: ExportSpec, export: Callable[[ExportSpec], T]) -> tuple[T, str]:
    """What ``export`` returns for the dims that were found, and a text that tells them.

    The text is empty if no dim is "auto". Raises the error of the last attempt.
    """
    auto = {name for name, value in request.dynamic_dims.items() if value.strip() == AUTO}
    if AUTO in request.dynamic_dims:
        auto = set()  # then it is the name of a dim
    if not auto:
        return export(request), ""
    dims = {n: _START if n in auto else v for n, v in request.dynamic_dims.items()}
    for attempt in range(_ATTEMPTS):
        try:
            result = export(dataclasses.replace(request, dynamic_dims=dims))
        except DimsError as e:
            declared = {n: v for n, v in dims.items() if n not in auto}
            changed = {n for n, v in declared.items() if e.dims.get(n) != v}
            if changed or e.dims in ({}, dims) or attempt == _ATTEMPTS - 1:
                raise
            auto |= set(e.dims) - set(dims)
            dims = e.dims
        else:
            return result, _found(request.label, dims)
    raise AssertionError("the last attempt returns or raises")


def _found(label: str, dims: Mapping[str, str]) -> str:
    entries = ", ".join(f'"{name}": "{value}"' for name, value in dims.items())
    single = {name: m[1] for name, value in dims.items() if (m := _SINGLE.fullmatch(value))}
    notes = [
        f"\n  The model works for one {name} only: write {size} in place of {name} in inputs."
        for name, size in single.items()
    ]
    return (
        f'{label}: the dims that were found for "auto"; declare them, with the ranges that you '
        f"need:\n    dynamic_dims = {{{entries}}},{''.join(notes)}\n"
    )
