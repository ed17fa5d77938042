"""The GPU that is measured: what it is, and how much of its memory is in use."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

# What a program on a GPU may be told by.
VARIABLES = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
_EMULATOR = "PTX_EMULATOR_"

_REMEDY = (
    "Run this on a machine with one. The models can be built on another machine, and their "
    'programs carried: see "On a machine that builds nothing" in docs/cuda.md'
)


def describe() -> dict[str, Any]:
    """The first GPU, as the driver knows it. Exits with the reason where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(
            "//benchmarks:cuda measures on an NVIDIA GPU, and this machine has no usable driver "
            f"({error}). {_REMEDY}"
        )
    count = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code or not count.value:
        found = f"the driver's error {code}" if code else "no device"
        sys.exit(f"//benchmarks:cuda measures on an NVIDIA GPU, and there is {found}. {_REMEDY}")
    device, name, version = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDriverGetVersion(ctypes.byref(version))
    return {
        "gpu": name.value.decode(),
        "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "emulator": hasattr(driver, "ptx_emulator_statistics"),
    }


def variables() -> dict[str, str]:
    """What contestants get of this program's environment, so that they find the same GPU."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in VARIABLES or name.startswith(_EMULATOR)
    }


def used_memory() -> int | None:
    """Bytes of the GPU that are in use by all processes; None where nvidia-smi does not tell."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0] or "0"
    query = ["--query-gpu=memory.used", "--format=csv,noheader,nounits", f"--id={device}"]
    try:
        text = subprocess.run(
            ["nvidia-smi", *query], check=True, capture_output=True, text=True, timeout=60
        ).stdout
        return int(text.strip().splitlines()[0]) * 1024 * 1024
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
