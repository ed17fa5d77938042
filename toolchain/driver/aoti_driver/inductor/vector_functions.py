"""Computes functions such as ``exp`` for vectors also at the end of a loop of vectors.

Inductor (torch 2.13) writes the end of a loop, or all of a loop that is shorter than a vector, for
one element at a time where many operations are selections, or loads of elements that don't follow
each other. It counts operations as if all took the same time. But a call of ``log1p`` for one
element takes as long as one for a vector.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch._inductor.codegen.cpp:TilingSelect.select_tiling"

# Those that the runtime computes for a whole vector: runtime/slim/kernels/vecmath_float.h.
_FUNCTIONS = frozenset(
    (
        "cos",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log10",
        "log1p",
        "log2",
        "pow",
        "sigmoid",
        "sin",
        "tan",
        "tanh",
    )
)


@contextlib.contextmanager
def in_vectors() -> Iterator[None]:
    select_tiling = patching.original(_PLACE)

    def select(selection: Any, bodies: Any, sizes: Any) -> Any:
        factors, indices, stats = select_tiling(selection, bodies, sizes)
        if not _FUNCTIONS.isdisjoint(stats.op_counter):
            # What speaks against vectors at the end of a loop.
            stats.mask_op_count = 0
            stats.non_contig_indexing_op_counter.clear()
        return factors, indices, stats

    with patching.replaced({_PLACE: select}):
        yield
