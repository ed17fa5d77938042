"""What a costly function gives is calculated once, not by every loop that reads it.

Inductor does so for `exp`, `log`, `sigmoid` and `tanh`. Of a rotary embedding that a model
calculates in `forward()`, every layer's loops would else calculate `cos` and `sin` anew, for each
head.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch._inductor.ir:StorageBox.should_realize_on_reuse"
# As Inductor's loops name them, where it knows no cheaper way to write them.
_FUNCTIONS = frozenset(
    "acos acosh asin asinh atan atan2 atanh cos cosh erf erfc expm1 lgamma pow sin sinh tan".split()
)


@contextlib.contextmanager
def shared() -> Iterator[None]:
    from torch._inductor import ir

    decide = patching.original(_PLACE)

    def stored(box: Any, users: int, **options: Any) -> bool:
        if decide(box, users, **options):
            return True
        data = box.data
        return (
            users > 1
            and isinstance(data, (ir.Pointwise, ir.Reduction))
            and ir.is_cpu(data)
            and not _FUNCTIONS.isdisjoint(data.inner_fn_opcount().used_ops)
        )

    with patching.replaced({_PLACE: stored}):
        yield
