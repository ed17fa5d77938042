"""The machine code of all kernels: NVIDIA's assembler has made it for each architecture listed."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest

MODELS = os.environ["MODELS"].split(",")
ARCHS = [int(arch.removeprefix("sm_")) for arch in os.environ["ARCHS"].split(",")]
FOLDER = Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], "tests", "cuda")

KERNEL = re.compile(r'\{"(?P<symbol>\w+)", kImages(?P<table>\d+), (?P<count>\d+)\},')
TABLE = re.compile(r"kImages(?P<table>\d+)\[\] = \{\n(?P<rows>.*?)\n\};", re.DOTALL)
ROW = re.compile(r"\{(?P<arch>\d+), (?P<is_ptx>true|false), (?P<offset>\d+), (?P<size>\d+), ")

ELF = b"\x7fELF\x02\x01"  # 64 bits, little endian
CUDA = 190  # EM_CUDA


def code_arch(cubin: bytes) -> int:
    """The architecture that a cubin says that it is for: 80 for sm_80."""
    assert cubin.startswith(ELF), cubin[:16]
    (machine,) = struct.unpack_from("<H", cubin, 18)
    assert machine == CUDA
    flags: int = struct.unpack_from("<I", cubin, 48)[0]
    # In the second byte since version 8 of the ABI.
    return flags & 0xFF if cubin[8] < 8 else flags >> 8 & 0xFF


@pytest.mark.parametrize("model", MODELS)
def test_each_kernel_for_each_arch(model: str) -> None:
    of_both = FOLDER / f"{model}.cuda.program.cpp"  # beside the CPU's
    stem = f"{model}.cuda" if of_both.exists() else model
    table = (FOLDER / f"{stem}.program.cpp").read_text(encoding="utf-8")
    data = (FOLDER / f"{stem}.cuda_images.bin").read_bytes()
    tables = {match["table"]: list(ROW.finditer(match["rows"])) for match in TABLE.finditer(table)}
    kernels = list(KERNEL.finditer(table))
    assert kernels
    for kernel in kernels:
        found = []
        for row in tables[kernel["table"]]:
            image = data[int(row["offset"]) :][: int(row["size"])]
            if row["is_ptx"] == "true":
                assert f".entry {kernel['symbol']}(".encode() in image
                continue
            assert kernel["symbol"].encode() in image
            assert code_arch(image) == int(row["arch"])
            found.append(int(row["arch"]))
        assert found == ARCHS, kernel["symbol"]
