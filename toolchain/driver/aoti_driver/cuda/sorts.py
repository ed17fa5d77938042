"""sort, topk and kthvalue as Triton kernels, for rows of limited length.

Inductor can sort a row of any length in one block. It does so for rows of at most 512 elements in
sort, and never in topk and kthvalue, which it calls as functions. A program for GPUs has no
functions, so all of them are kernels here. Longer rows are made of short ones by long_sorts.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sympy

from aoti_driver.cuda import operators, sort_limits
from aoti_driver.torch_internals import patching

OPTIONS = {"triton.decompose_sort_ops": True}


@contextlib.contextmanager
def in_kernels() -> Iterator[None]:
    """Rows of unknown length are left to functions, which artifacts/cuda_functions.py refuses."""
    places = {operators.find(name): place for name, place in sort_limits.SORTS.items()}
    with patching.entries_kept("torch._inductor.lowering:lowerings", places) as lowerings:
        lowerings.update({op: _lowered(lowerings[op], place) for op, place in places.items()})
        yield


def _lowered(lower: Any, place: int) -> Any:
    def lowered(x: Any, *args: Any, **kwargs: Any) -> Any:
        dim = args[place - 1] if len(args) >= place else kwargs.get("dim", -1)
        if not _short(x.get_size(), dim):
            return lower(x, *args, **kwargs)
        with patching.options("torch._inductor.config", OPTIONS):
            return lower(x, *args, **kwargs)

    return lowered


def _short(sizes: Any, dim: int) -> bool:
    """True if the declared range of the row's length is within the limit."""
    from torch._inductor.virtualized import V

    known = V.graph.sizevars.statically_known_true
    return not sizes or bool(known(sympy.Le(sizes[dim], sort_limits.LONGEST_ROW)))
