"""Makes Inductor generate code for a given instruction set on any host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.contract.isa import Isa
from aoti_driver.torch_internals import patching


@contextlib.contextmanager
def target(isa: Isa) -> Iterator[dict[str, Any]]:
    """Makes Inductor generate for ``isa`` on any host; yields the options that this needs.

    Inductor checks the host's CPU and compiles a probe for each instruction set. Here the list of
    valid ones is given, and its only entry is valid without a probe.
    """
    from torch._inductor import cpu_vec_isa

    valid: list[Any] = []
    width = 1  # simdlen of scalar code, which differs from every vector width
    if isa.vector is not None:
        vector = getattr(cpu_vec_isa, isa.vector)
        trusted = type(
            isa.vector, (vector,), {"__bool__": lambda _: True, "__hash__": vector.__hash__}
        )
        valid.append(trusted())
        width = valid[0].bit_width()
    listed = "torch._inductor.cpu_vec_isa:valid_vec_isa_list"
    with patching.replaced({listed: lambda: list(valid)}):
        yield {"cpp.simdlen": width}
