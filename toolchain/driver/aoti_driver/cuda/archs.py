"""The GPU architectures that kernels are compiled for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.base.errors import DriverError, did_you_mean, listed


@dataclasses.dataclass(frozen=True)
class Arch:
    """What code generation asks of a device; the numbers are those of a common one.

    multiprocessors: the kernels' tiles are chosen for about as many blocks. shared_bytes: the most
    shared memory of a block. threads: the most of a multiprocessor.
    """

    name: str
    multiprocessors: int
    shared_bytes: int
    threads: int

    @property
    def capability(self) -> int:
        """80 for sm_80."""
        return int(self.name.removeprefix("sm_"))


ARCHS = {
    arch.name: arch
    for arch in (
        Arch("sm_75", 40, 65536, 1024),
        Arch("sm_80", 108, 166912, 2048),
        Arch("sm_86", 84, 101376, 1536),
        Arch("sm_89", 142, 101376, 1536),
        Arch("sm_90", 132, 232448, 2048),
        Arch("sm_100", 148, 232448, 2048),
        Arch("sm_120", 170, 101376, 1536),
    )
}

# The newest architecture whose PTX newer devices accept: Triton writes that of later ones for
# sm_90a and the like.
PORTABLE_PTX = 89


def find(names: Sequence[str], label: str) -> tuple[Arch, ...]:
    """The architectures from the lowest to the highest."""
    if not names:
        raise DriverError(
            f'{label}: cuda_archs is empty; name the GPUs to compile for, such as ["sm_80"]'
        )
    for name in names:
        if name not in ARCHS:
            raise DriverError(
                f'{label}: cuda_archs: unknown architecture "{name}"{did_you_mean(name, ARCHS)}; '
                f"known are {listed(ARCHS)}"
            )
    return tuple(sorted({ARCHS[name] for name in names}, key=lambda arch: arch.capability))
