"""Compiles generated code, links it with the slim runtime, and runs it in this process."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from aoti_driver.contract.manifest import CodeManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.program import weights_file

from tests.survey.pipeline import PROGRAM_ID, sources

ROOT = Path(__file__).absolute().parents[2]
FUNCTIONS = ROOT / "runtime/slim/functions.txt"


def _torch_headers() -> Path:
    """Beside the packages where Bazel unpacked them; in the package itself where pip did."""
    beside = Path(torch.__file__).parents[2] / "torch_headers"
    return beside if beside.exists() else Path(torch.__file__).parent / "include"


# As in rules/private, but for the level: thousands of kernels shall compile quickly.
_FLAGS = [
    "-std=c++20",
    "-O1",
    "-fPIC",
    "-w",
    "-DNDEBUG",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffp-contract=off",
    "-fno-tree-loop-vectorize",
    "-march=x86-64-v3",
    "-DCPU_CAPABILITY=AVX2",
    "-DCPU_CAPABILITY_AVX2",
    "-DTORCH_INDUCTOR_CPP_WRAPPER",
    "-DAOTI_SLIM",
    "-DSTANDALONE_TORCH_HEADER",
    "-DC10_USING_CUSTOM_GENERATED_MACROS",
]

_ENTRIES = f"""
#include <exception>
#include <string>

#include "runtime/core/program.h"

#define API extern "C" __attribute__((visibility("default")))

namespace aoti_programs {{ extern const ::aoti::ProgramVTable {PROGRAM_ID}; }}
namespace {{ const auto& program = aoti_programs::{PROGRAM_ID}; }}

API void* create() {{ return program.create(0); }}
API aoti::internal::ProgramCounts counts(void* instance) {{ return program.counts(instance); }}
API void set_constants(void* instance, const AtenTensorHandle* handles) {{
  program.set_constants(instance, handles);
}}
API AtenTensorHandle borrow(void* data, int64_t rank, const int64_t* sizes, const int64_t* strides,
                            int64_t offset, int32_t dtype) {{
  AtenTensorHandle handle = nullptr;
  program.shim.create_tensor_from_blob(data, rank, sizes, strides, offset, dtype, 0, 0, &handle);
  return handle;
}}
struct View {{
  void* data;
  int64_t rank;
  int64_t* sizes;
  int64_t* strides;
  int32_t dtype;
}};
API View view(AtenTensorHandle handle) {{
  View v{{}};
  program.shim.get_data_ptr(handle, &v.data);
  program.shim.get_dim(handle, &v.rank);
  program.shim.get_sizes(handle, &v.sizes);
  program.shim.get_strides(handle, &v.strides);
  program.shim.get_dtype(handle, &v.dtype);
  return v;
}}
API void release(AtenTensorHandle handle) {{ program.shim.delete_tensor_object(handle); }}
API const char* run(void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs) {{
  static thread_local std::string error;
  try {{
    program.run(instance, inputs, outputs, nullptr);
    return nullptr;
  }} catch (const std::exception& e) {{
    error = e.what();
    return error.c_str();
  }}
}}
"""

_DTYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.float8_e4m3fn: 24,
}
_NUMBERS = {number: dtype for dtype, number in _DTYPES.items()}


class NativeError(Exception):
    """The code doesn't compile, link or run; the message says why."""


def _compiler() -> str:
    found = shutil.which("g++") or shutil.which("c++")
    if found is None:
        raise NativeError("no C++ compiler on PATH")
    return found


def _command(command: Sequence[str | Path]) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [li for li in done.stderr.splitlines() if "error" in li or "undefined" in li]
        raise NativeError("; ".join(lines[:4]) or done.stderr[:400])


def _object(source: Path) -> Path:
    target = source.with_suffix(".o")
    folders = [_generated()[1], _torch_headers(), ROOT, ROOT / "runtime/include"]
    include = [f"-I{folder}" for folder in folders]
    _command([_compiler(), "-c", *_FLAGS, *include, source, "-o", target])
    return target


@functools.cache
def _generated() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A folder with the header that gives the C ABI's functions slim's names, as Bazel makes it."""
    scratch = tempfile.TemporaryDirectory(prefix="aoti_survey_")
    header = Path(scratch.name) / "runtime/slim/names.h"
    header.parent.mkdir(parents=True)
    names = FUNCTIONS.read_text(encoding="utf-8").split()
    called = [name for name in names if name.startswith(("aoti_torch_", "aoti_record_", "torch_"))]
    text = "".join(f"#define {name} slim_{name}\n" for name in called)
    header.write_text(text, encoding="utf-8")
    return scratch, Path(scratch.name)


@functools.cache
def _common() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """The functions that are called from here, compiled once for all programs."""
    scratch = tempfile.TemporaryDirectory(prefix="aoti_survey_")
    source = Path(scratch.name) / "entries.cpp"
    source.write_text(_ENTRIES, encoding="utf-8")
    return scratch, _object(source)


def prepare() -> None:
    _common()


def build(folder: Path, slim: Path) -> Path:
    """A library of the program with slim in it. slim: //tests/survey:slim."""
    objects = [_object(source) for source in sources(folder)]
    target = folder / "libprogram.so"
    whole: list[str | Path] = ["-Wl,--whole-archive", slim, "-Wl,--no-whole-archive"]
    flags = ["-shared", "-pthread", "-Wl,-Bsymbolic", "-Wl,--no-undefined"]
    _command([_compiler(), *flags, *objects, _common()[1], *whole, "-o", target])
    return target


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("inputs", "outputs", "constants")]


class _View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int32),
    ]


_FUNCTIONS: dict[str, Any] = {
    "create": ctypes.c_void_p,
    "counts": _Counts,
    "set_constants": None,
    "borrow": ctypes.c_void_p,
    "view": _View,
    "release": None,
    "run": ctypes.c_char_p,
}


class Compiled:
    """One instance of the program in ``folder``, with weights of its own."""

    _create: Any
    _counts: Any
    _set_constants: Any
    _borrow: Any
    _view: Any
    _release: Any
    _run: Any

    def __init__(self, library: Path, folder: Path) -> None:
        program_library = ctypes.CDLL(str(library))
        for name, result in _FUNCTIONS.items():
            function = program_library[name]
            function.restype = result
            setattr(self, f"_{name}", function)
        self._instance = ctypes.c_void_p(self._create())
        self.counts = self._counts(self._instance)
        manifest = read_manifest(folder / "compiled.json", CodeManifest)
        stored = weights_file.read_weights(folder / "weights.safetensors")
        self._constants = [
            stored[c.source].as_strided(c.shape, c.stride, c.offset)
            for c in manifest.codegen.constants
        ]
        self._set_constants(self._instance, self._handles(self._constants))

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if len(inputs) != self.counts.inputs:
            raise NativeError(f"takes {self.counts.inputs} inputs, got {len(inputs)}")
        outputs = (ctypes.c_void_p * self.counts.outputs)()
        error = self._run(self._instance, self._handles(inputs), outputs)
        if error is not None:
            raise NativeError(error.decode())
        return [self._take(handle) for handle in outputs]

    def _handles(self, tensors: Sequence[torch.Tensor]) -> Any:
        handles = []
        for tensor in tensors:
            array = ctypes.c_int64 * max(tensor.dim(), 1)
            handle = self._borrow(
                ctypes.c_void_p(tensor.untyped_storage().data_ptr() or 64),
                ctypes.c_int64(tensor.dim()),
                array(*tensor.shape),
                array(*tensor.stride()),
                ctypes.c_int64(int(tensor.storage_offset())),
                ctypes.c_int32(_DTYPES[tensor.dtype]),
            )
            handles.append(handle)
        return (ctypes.c_void_p * max(len(handles), 1))(*handles)

    def _take(self, handle: int) -> torch.Tensor:
        view = self._view(ctypes.c_void_p(handle))
        shape, strides = view.sizes[: view.rank], view.strides[: view.rank]
        result = torch.empty_strided(shape, strides, dtype=_NUMBERS[view.dtype])
        if result.numel():
            storage = result.untyped_storage()
            ctypes.memmove(storage.data_ptr(), view.data, storage.nbytes())
        self._release(ctypes.c_void_p(handle))
        return result
