"""AMX on every CPU: amx_emulator.cc runs its instructions where the CPU doesn't."""

from __future__ import annotations

import ctypes
from pathlib import Path

import harness

_HIDDEN, _EMULATED = 0, 2


def is_there() -> bool:
    """Whether the CPU has AMX for bfloat16 and the kernel lets this process use it."""
    request_feature, tile_data = 0x1023, 18
    if "amx_bf16" not in cpu_flags():
        return False
    arch_prctl = 158
    return bool(ctypes.CDLL(None).syscall(arch_prctl, request_feature, tile_data) == 0)


def has_pairs() -> bool:
    """Whether the CPU has AVX512_BF16."""
    return "avx512_bf16" in cpu_flags()


def can_be_emulated() -> bool:
    """Whether the CPU has what each one with AMX has: kernels use that, too."""
    return {"avx512_bf16", "avx512_vnni", "avx512vbmi"} <= set(cpu_flags())


def cpu_flags() -> list[str]:
    return Path("/proc/cpuinfo").read_text(encoding="utf-8").split()


def emulate(slim: harness.Slim) -> None:
    """Until restore(), the runtime takes the CPU for one with AMX. See can_be_emulated()."""
    slim.library.aoti_slim_test_emulate_amx()
    slim.library.aoti_slim_allow_amx(_EMULATED)


def emulated(slim: harness.Slim) -> int:
    """The number of products of tiles that were emulated up to now."""
    count = slim.library.aoti_slim_test_emulated_products
    count.restype = ctypes.c_int64
    return int(count())


def hide(slim: harness.Slim) -> None:
    slim.library.aoti_slim_allow_amx(_HIDDEN)


def restore(slim: harness.Slim) -> None:
    """The runtime uses what the CPU has."""
    slim.library.aoti_slim_allow_amx(1)
