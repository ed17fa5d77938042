"""Target instruction sets, and what the C++ compiler must be told for each.

The generated code names no instruction set: which intrinsics its vector types use is decided by the
preprocessor macro and the compile flags. So a program that was generated for one of these must
be compiled with exactly these flags (the build rules hold the same table):

    isa         flags
    x86-64      (none)
    x86-64-v3   -march=x86-64-v3 -DCPU_CAPABILITY=AVX2 -DCPU_CAPABILITY_AVX2
    x86-64-v4   -march=x86-64-v4 -DCPU_CAPABILITY=AVX512 -DCPU_CAPABILITY_AVX512
    aarch64     -march=armv8-a -DCPU_CAPABILITY=NEON -DCPU_CAPABILITY_NEON
                -DAT_BUILD_ARM_VEC256_WITH_SLEEF
"""

from __future__ import annotations

import dataclasses

from aoti_driver.base.errors import DriverError, did_you_mean, listed


@dataclasses.dataclass(frozen=True)
class Isa:
    """``vector``: the class in torch._inductor.cpu_vec_isa; None for scalar code."""

    name: str
    vector: str | None
    machine: str  # as platform.machine() calls it


ISAS = {
    isa.name: isa
    for isa in (
        Isa("x86-64", None, "x86_64"),
        Isa("x86-64-v3", "VecAVX2", "x86_64"),
        Isa("x86-64-v4", "VecAVX512", "x86_64"),
        Isa("aarch64", "VecNEON", "aarch64"),
    )
}


def find(name: str) -> Isa:
    if name not in ISAS:
        raise DriverError(
            f'unknown isa "{name}"{did_you_mean(name, ISAS)}; known are {listed(ISAS)}'
        )
    return ISAS[name]
