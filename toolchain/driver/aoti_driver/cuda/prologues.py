"""Constants as operands of products, such as the first state of a recurrent layer.

Inductor writes what computes an operand into the product's kernel. There it writes a constant as a
tensor of one dim, which Triton does not broadcast to a matrix; here it is a number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_CONSTANT = "torch._inductor.codegen.triton:TritonKernelOverrides.constant"


@contextlib.contextmanager
def of_constants() -> Iterator[None]:
    from torch._inductor.codegen.triton import TritonOverrides
    from torch._inductor.select_algorithm import TritonTemplateKernel
    from torch._inductor.virtualized import V

    constant = patching.original(_CONSTANT)
    of_number: Any = TritonOverrides.constant

    def number(_: Any, value: Any, dtype: Any) -> Any:
        if isinstance(V.kernel, TritonTemplateKernel):
            return of_number(value, dtype)
        return constant(value, dtype)

    with patching.replaced({_CONSTANT: classmethod(number)}):
        yield
