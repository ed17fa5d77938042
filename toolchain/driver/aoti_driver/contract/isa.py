"""The instruction sets that code is generated for."""

from __future__ import annotations

import dataclasses

from aoti_driver.base.errors import DriverError, did_you_mean, listed


@dataclasses.dataclass(frozen=True)
class Isa:
    """The columns of toolchain/tables/isas.bzl, which describes them."""

    name: str
    cpu: str
    vector: str | None


ISAS = {
    isa.name: isa
    for isa in (
        # BEGIN python_isas: generated from toolchain/tables by ./bazelw run //tools/tables:update
        Isa("x86-64", "x86_64", None),
        Isa("x86-64-v3", "x86_64", "VecAVX2"),
        Isa("x86-64-v4", "x86_64", "VecAVX512"),
        Isa("aarch64", "aarch64", "VecNEON"),
        # END python_isas
    )
}


def find(name: str) -> Isa:
    if name not in ISAS:
        raise DriverError(
            f'unknown isa "{name}"{did_you_mean(name, ISAS)}; known are {listed(ISAS)}'
        )
    return ISAS[name]
