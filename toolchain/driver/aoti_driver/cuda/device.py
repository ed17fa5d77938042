"""Everything that differs while Inductor generates code for GPUs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from aoti_driver.base import environment
from aoti_driver.cuda import (
    convolutions,
    decompositions,
    index_checks,
    launches,
    plain_products,
    pretended_device,
    prologues,
    random_numbers,
    retarget,
    scatters,
    sorts,
    templates,
)
from aoti_driver.cuda.archs import Arch
from aoti_driver.cuda.tuning_file import Tuning

# Options that the user may change.
DEFAULTS = random_numbers.OPTIONS
# torch_internals/changes.py says why each.
OPTIONS = {
    "aot_inductor.embed_kernel_binary": True,
    "triton.autotune_at_compile_time": True,
    "triton.unique_kernel_names": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "max_autotune_gemm": True,
    "shape_padding": False,
}

# Of a program that is measured: its kernels can run again with the same result.
MEASURED_OPTIONS = {"inplace_buffers": False}


@contextlib.contextmanager
def generating(archs: Sequence[Arch], scratch: str, tuning: Tuning) -> Iterator[launches.Launched]:
    """archs: the lowest first, for which the code is chosen. Yields the kernels, which are added
    while the code is generated.
    """
    with contextlib.ExitStack() as stack:
        for name, value in (("TRITON_CACHE_DIR", scratch), ("TRITON_DISABLE_LINE_INFO", "1")):
            stack.enter_context(environment.changed(name, value))
        stack.enter_context(pretended_device.pretended(archs[0]))
        stack.enter_context(retarget.told_apart())
        stack.enter_context(retarget.computed_on_host())
        stack.enter_context(templates.chosen(archs, tuning))
        stack.enter_context(convolutions.in_kernels())
        stack.enter_context(plain_products.in_kernels())
        stack.enter_context(prologues.of_constants())
        stack.enter_context(index_checks.reported())
        stack.enter_context(sorts.in_kernels())
        stack.enter_context(scatters.in_kernels())
        stack.enter_context(random_numbers.seeded_by_the_runtime())
        stack.enter_context(decompositions.added())
        yield stack.enter_context(launches.through_the_runtime(archs, tuning.measured))
