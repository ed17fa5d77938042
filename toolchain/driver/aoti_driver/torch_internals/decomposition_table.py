"""Inductor's table of decompositions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aoti_driver.torch_internals import patching

_TABLE = "torch._inductor.decomposition:decompositions"
# The operators that added decompositions decompose, each of which may use another.
_decomposed: list[str] = []


def decomposed() -> str | None:
    """The operator that an added decomposition decomposes at present, if one does."""
    return _decomposed[-1] if _decomposed else None


@contextlib.contextmanager
def added(ours: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Adds decompositions of operators. Where one returns NotImplemented, the one that it replaces
    is used, if there is one.
    """
    from torch._inductor.decomposition import fast_random_decomps

    try:
        with patching.entries_kept(_TABLE, ours) as table:
            table.update({op: _or(op, function, table.get(op)) for op, function in ours.items()})
            fast_random_decomps.cache_clear()  # a copy of the table
            yield
    finally:
        fast_random_decomps.cache_clear()


def _or(
    op: Any, first: Callable[..., Any], second: Callable[..., Any] | None
) -> Callable[..., Any]:
    def decompose(*args: Any, **kwargs: Any) -> Any:
        _decomposed.append(str(op))
        try:
            result = first(*args, **kwargs)
        finally:
            _decomposed.pop()
        return second(*args, **kwargs) if result is NotImplemented and second else result

    return decompose
