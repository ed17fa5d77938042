"""The environment of every step: fixed, whatever the machine, the user or the shell have set."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aoti_driver.base.files import scratch_directory

_FIXED = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "USER": "aoti",
    "LOGNAME": "aoti",
    "OPENBLAS_NUM_THREADS": "1",
    # Builds share the machine: threads that spin while they wait would starve each other.
    "OMP_WAIT_POLICY": "passive",
}

# What PyTorch computes while it builds would differ by the host's vector unit and its maker:
# constants that a model computes in __init__, in their last bits (random numbers and all); weights
# packed for 4-bit products, of which PyTorch has a layout for each unit; and the layouts that it
# predicts for the results of convolutions. Each of its libraries has a switch. AVX2 is what nearly
# every x86-64 machine has, and its 4-bit layout is the one that the slim runtime reads. (A machine
# without it falls back to the plain code; torch itself doesn't ask, it dies.)
_CAPABILITY = "ATEN_CPU_CAPABILITY"
_PORTABLE = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    # MKL's other modes are for Intel's CPUs: AMD's get other code in each.
    "MKL_CBWR": "COMPATIBLE",
}
_CPU_INFO = Path("/proc/cpuinfo")


def purge(portable: bool = True) -> None:
    """Replaces the environment. Must come before torch is imported: it reads TORCH_* then.

    With ``portable``, torch computes the same on every CPU: for what goes into artifacts. A test
    wants what users get instead, the kernels for the CPU at hand.
    """
    temporary = os.environ.get("TMPDIR")
    os.environ.clear()
    os.environ.update(_FIXED)
    if portable:
        os.environ.update(_PORTABLE)
        os.environ[_CAPABILITY] = _portable_capability()
    if temporary and os.path.isdir(temporary):
        tempfile.tempdir = os.path.abspath(temporary)


def _portable_capability() -> str:
    if platform.machine() != "x86_64":
        return "default"
    flags = re.search(r"^flags\s*:(.*)$", _CPU_INFO.read_text(encoding="utf-8"), re.MULTILINE)
    return "avx2" if flags and {"avx2", "fma"} <= set(flags[1].split()) else "default"


@contextlib.contextmanager
def private_directories(given: Path | None = None) -> Iterator[str]:
    """A fresh HOME, temporary folder and compiler caches, removed at the end.

    given: an empty folder to make them in, which somebody else removes.
    """
    outer = tempfile.tempdir
    with contextlib.nullcontext(given) if given else scratch_directory() as scratch:
        places = {
            "HOME": "home",
            "TMPDIR": "tmp",
            "XDG_CACHE_HOME": "cache",
            "TORCHINDUCTOR_CACHE_DIR": "inductor",
            "TRITON_CACHE_DIR": "triton",
        }
        before = dict(os.environ)
        for variable, name in places.items():
            (scratch / name).mkdir()
            os.environ[variable] = str(scratch / name)
        tempfile.tempdir = str(scratch / "tmp")
        try:
            yield str(scratch)
        finally:
            tempfile.tempdir = outer
            os.environ.clear()
            os.environ.update(before)
