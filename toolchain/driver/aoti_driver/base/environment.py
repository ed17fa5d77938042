"""The environment of every step, which does not depend on the machine, the user or the shell."""

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
    # Builds share the machine: spinning threads would take CPU time from each other.
    "OMP_WAIT_POLICY": "passive",
}

# What PyTorch computes during the build would differ with the host CPU's vector unit and vendor:
# constants that a model computes in __init__ differ in their last bits (including random numbers),
# weights for 4-bit products are packed in a layout for each vector unit, and the predicted layouts
# of convolutions' results vary. Each of PyTorch's libraries has a switch. AVX2 is available on
# nearly every x86-64 machine, and the slim runtime reads its 4-bit layout. (A machine without AVX2
# uses the default code; torch does not check and would crash.)
_CAPABILITY = "ATEN_CPU_CAPABILITY"
_PORTABLE = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    # MKL's other modes are for Intel's CPUs; AMD's get different code in each of them.
    "MKL_CBWR": "COMPATIBLE",
}
_CPU_INFO = Path("/proc/cpuinfo")


def purge(portable: bool = True) -> None:
    """Replaces the environment. Call this before torch is imported, since torch reads TORCH_* then.

    With ``portable``, torch computes the same on every CPU, which artifacts need. A test uses the
    kernels for its own CPU instead, as users do.
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

    given: an empty folder in which to make them, which the caller removes.
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


@contextlib.contextmanager
def changed(name: str, value: str) -> Iterator[None]:
    """The variable has the value inside the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
