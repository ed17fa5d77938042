"""Keeps ``ceil_mode`` of pools whose sizes vary.

Where the sample's size makes a pool with ``ceil_mode`` return as much as one without it, Inductor
writes one without it, and guards on that. No compiled program checks its guards: it would be wrong
for every other size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch._inductor.lowering:pooling_size"


@contextlib.contextmanager
def right_for_all_sizes() -> Iterator[None]:
    size_and_mode = patching.original(_PLACE)

    def without_the_sample(
        x: Any,
        i: int,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        *,
        dilation: Sequence[int] | None = None,
    ) -> Any:
        spread = (kernel_size[i] - 1) * (dilation[i] if dilation is not None else 1)
        # Otherwise the last window may begin behind the end, and the export has a guard on that.
        ends_inside = spread > padding[i] + stride[i] - 2
        with (
            patching.options("torch.fx.experimental._config", {"backed_size_oblivious": True})
            if ceil_mode and ends_inside
            else contextlib.nullcontext()
        ):
            return size_and_mode(x, i, kernel_size, stride, padding, ceil_mode, dilation=dilation)

    with patching.replaced({_PLACE: without_the_sample}):
        yield
