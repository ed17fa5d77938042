"""The tables agree with torch, with libtorch's C ABI, with NumPy and with Python's struct."""

import ctypes
import platform
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.cuda import archs
from aoti_driver.verify.compare import DEFAULT_TOLERANCES
from torch._export.serde.schema import ScalarType
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE
from torch._inductor import cpu_vec_isa

from tables import update

TABLES = update.load(Path(__file__).resolve().parents[2])
MODELS: dict[str, Any] = TABLES["DTYPES"]
EVERY: dict[str, Any] = MODELS | TABLES["INSIDE_DTYPES"] | TABLES["ABI_DTYPES"]


@pytest.fixture(scope="module")
def libtorch() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cpu.so"))


@pytest.mark.parametrize("name", EVERY)
def test_numbers_and_sizes(name: str, libtorch: ctypes.CDLL) -> None:
    row, dtype = EVERY[name], getattr(torch, name)
    assert getattr(libtorch, f"aoti_torch_dtype_{name}")() == row["number"]
    assert _TORCH_TO_SERIALIZE_DTYPE[dtype] == ScalarType(row["schema"])
    assert dtype.itemsize == row["bytes"]


@pytest.mark.parametrize("name", EVERY)
def test_kinds(name: str) -> None:
    dtype = getattr(torch, name)
    if dtype.is_complex:
        kind = "complex"
    elif dtype.is_floating_point:
        kind = "float8" if dtype.itemsize == 1 else "bfloat" if name == "bfloat16" else "float"
    elif dtype == torch.bool:
        kind = "bool"
    else:
        kind = "signed" if dtype.is_signed else "unsigned"
    assert EVERY[name]["kind"] == kind


@pytest.mark.parametrize("name", MODELS)
def test_ranges(name: str) -> None:
    dtype = getattr(torch, name)
    if dtype.is_complex or dtype.is_floating_point:
        assert DTYPES[name].range is None
    elif dtype == torch.bool:
        assert DTYPES[name].range == (False, True)
    else:
        assert DTYPES[name].range == (torch.iinfo(dtype).min, torch.iinfo(dtype).max)


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row["numpy"]])
def test_numpy_and_struct(name: str) -> None:
    row = MODELS[name]
    array = np.zeros(1, getattr(np, row["numpy"]))
    assert array.dtype == torch.zeros(1, dtype=getattr(torch, name)).numpy().dtype
    # NumPy uses "l" for an int64 if C's long has 8 bytes; struct accepts both.
    exported = {"l": "q"}.get(array.data.format, array.data.format)
    assert exported == row["format"]
    if row["kind"] != "complex":
        assert struct.calcsize(row["format"]) == row["bytes"]


def test_tolerances_of_all_that_rounds() -> None:
    rounds = [name for name, row in MODELS.items() if row["kind"] in ("float", "bfloat", "complex")]
    assert set(DEFAULT_TOLERANCES) == {getattr(torch, name) for name in rounds}


def test_numpy_lacks_the_others() -> None:
    for name in (name for name, row in MODELS.items() if not row["numpy"]):
        with pytest.raises(TypeError):
            torch.zeros(1, dtype=getattr(torch, name)).numpy()


@pytest.mark.parametrize("name", TABLES["ISAS"])
def test_isas(name: str) -> None:
    row = TABLES["ISAS"][name]
    if row["vector"] is None:
        assert not [flag for flag in row["copts"] if flag.startswith(("-D", "-march"))]
        return
    vector = getattr(cpu_vec_isa, row["vector"])()
    # The flags with which Inductor itself calls a compiler for these vectors.
    macros = {f"-D{macro}" for macro in vector.build_macro()}
    assert macros <= set(row["copts"])
    (capability,) = (macro for macro in macros if macro.startswith("-DCPU_CAPABILITY_"))
    assert capability.replace("Y_", "Y=") in row["copts"]


def test_this_machine_has_a_row() -> None:
    assert platform.machine() in {row["cpu"] for row in TABLES["ISAS"].values()}


def test_gpus_are_those_of_the_driver() -> None:
    assert list(TABLES["CUDA_ARCHS"]) == list(archs.ARCHS)
