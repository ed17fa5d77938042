"""Products that Triton's templates are not for: of float64, of integers, sums of small ones.

The former are sums: each number of the result is one of its own, which reads a row and a column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import sympy
import torch
from torch import Tensor

from aoti_driver.torch_internals import patching

_DTYPES = (torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_SUM_OF_TWO = "torch._inductor.kernel.mm_plus_mm:tuned_mm_plus_mm"
# The template for the sum of two products has no tile for less.
_DEEP = 16


def _product(a: Tensor, b: Tensor, out_dtype: torch.dtype | None = None) -> Any:
    if a.dtype not in _DTYPES or out_dtype is not None:
        return NotImplemented
    # A sum of integers is of int64.
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2).to(a.dtype)


def _added_product(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    out_dtype: torch.dtype | None = None,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Any:
    result = _product(a, b, out_dtype)
    if result is NotImplemented:
        return result
    result = result * alpha
    return result if beta == 0 else x * beta + result


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.addmm.default": _added_product,
    "aten.baddbmm.default": _added_product,
    "aten.bmm.default": _product,
    "aten.mm.default": _product,
}


@contextlib.contextmanager
def in_kernels() -> Iterator[None]:
    """The sum of two products has a template, for products that are deep enough."""
    sum_of_two = patching.original(_SUM_OF_TWO)

    def add(a: Any, b: Any, c: Any, d: Any, *, layout: Any = None) -> Any:
        from torch._inductor import lowering
        from torch._inductor.virtualized import V

        if V.graph.sizevars.statically_known_true(sympy.Gt(a.get_size()[-1], _DEEP)):
            return sum_of_two(a, b, c, d, layout=layout)
        aten: Any = torch.ops.aten
        product, add = lowering.lowerings[aten.mm], lowering.lowerings[aten.add]
        return add(product(a, b), product(c, d))

    with patching.replaced({_SUM_OF_TWO: add}):
        yield
