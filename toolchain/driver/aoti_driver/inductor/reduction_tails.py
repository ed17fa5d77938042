"""What is left at the end of a tiled loop is stored by itself, if any loop inside of it reduces.

Inductor (torch 2.13) tiles two loops, one of them a reduction, where tensors lie along both. If a
third loop is between them, it stores the sums of a whole tile at the outer loop's end, too, where
fewer elements are left: it writes behind the end of a tensor. It thinks of this case where one
loop is tiled, not where two are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch._inductor.codegen.cpp:CppKernelProxy.aggregate_reduction_buffers"


@contextlib.contextmanager
def stored_apart() -> Iterator[None]:
    aggregate = patching.original(_PLACE)

    def by_loops(proxy: Any, inner_is_reduction: bool, outer: Any) -> None:
        apart = inner_is_reduction or (
            isinstance(proxy.kernels[0], proxy.tile2d_kernel_cls) and _has_reduction(proxy, outer)
        )
        aggregate(proxy, apart, outer)

    with patching.replaced({_PLACE: by_loops}):
        yield


def _has_reduction(proxy: Any, outer: Any) -> bool:
    loops = proxy.loop_nest.loops
    inside = loops[loops.index(outer) + 1 :]
    return not outer.is_reduction and any(loop.is_reduction for loop in inside)
