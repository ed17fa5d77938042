"""Loops don't write their results to the parts of concatenations that they read.

Inductor (torch 2.13) lets the parts of a concatenation be written to their places in its result. A
loop that is the last reader of such a part may write its own result there. But the memory is that
of the concatenation: as soon as nobody reads this one any more, another tensor gets it, while the
loop's result is still read. Then a program's results are wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch._inductor.codegen.wrapper:PythonWrapperCodegen.can_reuse"


@contextlib.contextmanager
def kept() -> Iterator[None]:
    from torch._inductor import ir

    can_reuse = patching.original(_PLACE)

    def may_be_reused(wrapper: Any, given: Any, by: Any = None) -> bool:
        # `by` is the loop that asks; without it, the question is whether the memory can be freed.
        if by is not None and isinstance(getattr(given.node, "layout", None), ir.NonOwningLayout):
            return False
        return bool(can_reuse(wrapper, given, by))

    with patching.replaced({_PLACE: may_be_reused}):
        yield
