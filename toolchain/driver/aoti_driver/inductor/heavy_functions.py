"""What a costly function gives is calculated once, not by every loop that reads it.

Inductor does so for `exp`, `log`, `sigmoid` and `tanh`. Of a rotary embedding that a model
calculates in `forward()`, every layer's loops would else calculate `cos` and `sin` anew, for each
head. The same holds for a table that is read at indices and then broadcast: biases for the distance
of two places would be looked up for each window.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch._inductor.ir:StorageBox.should_realize_on_reuse"
# As Inductor's loops name them, where it knows no cheaper way to write them.
_FUNCTIONS = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "expm1",
        "lgamma",
        "pow",
        "sin",
        "sinh",
        "tan",
    ]
)
# Reading at an index that is data.
_LOOKUP = "indirect_indexing"


@contextlib.contextmanager
def shared() -> Iterator[None]:
    from torch._inductor import ir

    decide = patching.original(_PLACE)

    def stored(box: Any, users: int, *, graph_reuse: bool = True) -> bool:
        if decide(box, users, graph_reuse=graph_reuse):
            return True
        data = box.data
        if users < 2 or not isinstance(data, (ir.Pointwise, ir.Reduction)) or not ir.is_cpu(data):
            return False
        called = data.inner_fn_opcount().used_ops
        # Where a tensor is broadcast, `users` says how many elements there will be for each.
        looked_up = not graph_reuse and _LOOKUP in called
        return looked_up or not _FUNCTIONS.isdisjoint(called)

    with patching.replaced({_PLACE: stored}):
        yield
