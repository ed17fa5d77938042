"""Products of float8 matrices, in float32.

PyTorch's `_scaled_mm` on the CPU converts both matrices to float32 and multiplies these, as slim's
operators for float32 do: no tensor of float8 reaches an operator of the runtime.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from aoti_driver.torch_internals import patching

_OPERATOR = torch.ops.aten._scaled_mm.default


@contextlib.contextmanager
def in_float32() -> Iterator[None]:
    """Adds the decomposition to Inductor's."""
    from torch._inductor.decomposition import fast_random_decomps

    try:
        with patching.entries_kept("torch._inductor.decomposition:decompositions", [_OPERATOR]) as (
            table
        ):
            table[_OPERATOR] = product
            fast_random_decomps.cache_clear()  # a copy of the table
            yield
    finally:
        fast_random_decomps.cache_clear()


def product(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The scales are one number, or one for each row of `a` and for each column of `b`."""
    result = torch.mm(a.float(), b.float()) * scale_a * scale_b
    if bias is not None:
        result = result + bias
    if scale_result is not None:
        result = result * scale_result
    return result.to(a.dtype if out_dtype is None else out_dtype)
