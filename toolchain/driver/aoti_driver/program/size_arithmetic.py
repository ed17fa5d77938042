"""Arithmetic on symbolic sizes is done once: the layers of a model compute the same sizes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx.experimental.proxy_tensor import get_proxy_mode

from aoti_driver.torch_internals import patching

# Their result depends on the operands' expressions alone; modulo asks for the ranges of sizes too.
_OPERATORS = (
    *("_add", "_sub", "_mul", "_sym_max", "_sym_min", "_and_", "_or_"),
    *("_eq", "_ne", "_gt", "_ge", "_lt", "_le"),
)


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Inside, an operator on two sizes of one ShapeEnv copies the SymNode that it made of them
    before, unless sizes have been replaced by expressions since.
    """
    known: dict[tuple[object, ...], object] = {}
    places = [f"torch.fx.experimental.sym_node:SymNode.{name}" for name in _OPERATORS]
    with patching.replaced(
        {place: _remembering(place, patching.original(place), known) for place in places}
    ):
        yield


def _remembering(
    place: str, compute: Callable[[Any, Any], Any], known: dict[tuple[object, ...], object]
) -> Callable[[Any, Any], Any]:
    @functools.wraps(compute)
    def operator(self: Any, other: Any) -> Any:
        env = self.shape_env
        # Equality doesn't tell all floats apart: 0.0 and -0.0.
        if env is None or self.pytype is float or other.pytype is float or get_proxy_mode():
            return compute(self, other)
        key = (
            *(place, env, env._replacements_version_counter),
            *(self._expr, self.pytype, self.hint, self._optimized_summation),
            *(other._expr, other.pytype, other.hint, other._optimized_summation),
        )
        before = known.get(key)
        if before is None:
            known[key] = result = compute(self, other)
            return result
        # A recorder of operators tells sizes that were computed apart by their nodes.
        result = object.__new__(type(before))
        vars(result).update(vars(before))
        return result

    return operator
