"""Freezes models, generates code, compiles it, and calls it through the program's table."""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from aoti_driver.contract.manifest import (
    ChosenShim,
    CodeManifest,
    LibraryManifest,
    ProgramManifest,
)
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.inductor import codegen
from aoti_driver.program import graph_file, weights_file
from torch import nn
from torch.export import ExportedProgram

ROOT = Path(__file__).parents[4]
TORCH = Path(torch.__file__).parent
TORCH_HEADERS = Path(torch.__file__).parents[2] / "torch_headers"
ISA = "x86-64-v3"
_COPTS = [
    "-std=c++20",
    "-O1",
    "-fPIC",
    "-w",
    "-DNDEBUG",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffp-contract=off",
    "-DTORCH_INDUCTOR_CPP_WRAPPER",
    "-DSTANDALONE_TORCH_HEADER",
    "-DC10_USING_CUSTOM_GENERATED_MACROS",
]
_ISA_COPTS = {
    "x86-64": [],
    "x86-64-v3": [
        "-fno-tree-loop-vectorize",
        "-march=x86-64-v3",
        "-DCPU_CAPABILITY=AVX2",
        "-DCPU_CAPABILITY_AVX2",
    ],
}


def freeze(
    folder: Path,
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    shapes: Any = None,
    change: Callable[[ExportedProgram], None] | None = None,
) -> ExportedProgram:
    """graph.json, weights.safetensors and manifest.json (without inputs and outputs).

    change: is called with the exported program.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        ep = torch.export.export(module, args, kwargs or {}, dynamic_shapes=shapes)
    if change is not None:
        change(ep)
    graph_file.save_graph(ep, folder / "graph.json")
    weights_file.write_weights(folder / "weights.safetensors", graph_file.stored_tensors(ep))
    manifest = ProgramManifest(
        label="//pkg:model",
        name="model",
        torch_version=torch.__version__,
        strict=False,
        dims=(),
        inputs=(),
        outputs=(),
        constants=graph_file.constants(ep),
        graph_sha256=hashlib.sha256((folder / "graph.json").read_bytes()).hexdigest(),
    )
    (folder / "manifest.json").write_text(to_json(manifest), encoding="utf-8")
    return ep


def generate(
    folder: Path,
    program_id: str,
    isa: str = ISA,
    cuda_archs: Sequence[str] = (),
    tuning: Path | None = None,
    **options: str,
) -> CodeManifest:
    """wrapper.cpp, kernels/ and, for GPUs, images.bin; returns the manifest of the code."""
    spec: dict[str, Any] = {"program_id": program_id, "isa": isa, "options": options}
    if cuda_archs:
        spec |= {"device": "cuda", "cuda_archs": list(cuda_archs)}
    parser = argparse.ArgumentParser()
    codegen.add_arguments(parser)
    codegen.run(
        parser.parse_args(
            [
                f"--spec={json.dumps(spec)}",
                f"--graph={folder / 'graph.json'}",
                f"--manifest={folder / 'manifest.json'}",
                f"--out_wrapper={folder / 'wrapper.cpp'}",
                f"--out_kernels={folder / 'kernels'}",
                f"--out_manifest={folder / 'compiled.json'}",
                f"--out_cuda_images={folder / 'images.bin'}",
                *([f"--tuning={tuning}"] if tuning else []),
            ]
        )
    )
    return read_manifest(folder / "compiled.json", CodeManifest)


def choose_shim(folder: Path, shim: ChosenShim) -> Path:
    """The manifest of a library that is linked with the given shim."""
    manifest = read_manifest(folder / "compiled.json", CodeManifest)
    path = folder / f"{shim}.json"
    library = LibraryManifest(manifest.program, manifest.codegen, shim)
    path.write_text(to_json(library), encoding="utf-8")
    return path


def sources(folder: Path) -> list[Path]:
    """The wrapper and the kernels."""
    return [folder / "wrapper.cpp", *sorted((folder / "kernels").glob("*.cpp"))]


def kernels(folder: Path) -> str:
    """The text of all kernels."""
    return "".join(path.read_text(encoding="utf-8") for path in sources(folder)[1:])


def compile_sources(sources: Sequence[Path], isa: str = ISA) -> list[Path]:
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "these tests need a C++ compiler on PATH"

    def compile_one(source: Path) -> Path:
        target = source.with_suffix(".o")
        openmp = ["-fopenmp"] if source.name == "openmp.cpp" else []
        include = [f"-I{TORCH_HEADERS}", f"-I{ROOT}"]
        flags = [*_COPTS, *_ISA_COPTS[isa], *openmp]
        command = [compiler, "-c", *flags, *include, str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        return target

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(compile_one, sources))


def compile_threads(folder: Path) -> tuple[Path, Path]:
    """The threads of programs that are linked with the runtime, and with stock PyTorch."""
    sources = []
    for name, file in (
        ("parallel", "core/parallel.cc"),
        ("openmp", "libtorch/parallel_openmp.cc"),
    ):
        sources.append(folder / f"{name}.cpp")
        sources[-1].write_text(f'#include "runtime/{file}"\n', encoding="utf-8")
    own, openmp = compile_sources(sources)
    return own, openmp


def compile_for_stock(folder: Path) -> list[Path]:
    """The wrapper and torch's container: with kernels and threads, the library of a package."""
    texts = {
        "stock.cpp": '#define AOTI_STOCK\n#include "wrapper.cpp"\n',
        "container.cpp": '#include "rules/private/stock_container.cc"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return compile_sources([folder / name for name in texts])


def link(objects: Sequence[Path], target: Path) -> Path:
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None
    libraries = [f"-L{TORCH / 'lib'}", "-l:libtorch_cpu.so"]
    flags = ["-shared", "-fopenmp", f"-Wl,-soname,{target.name}", "-Wl,--no-undefined"]
    subprocess.run(
        [compiler, *flags, *map(str, objects), *libraries, "-o", str(target)], check=True
    )
    return target


def build_programs(
    root: Path, models: dict[str, tuple[nn.Module, tuple[Any, ...], Any]], isa: str
) -> ctypes.CDLL:
    """A folder of ``root`` for each program, and all of them in one library, on the runtime's
    threads.

    models: program -> its module, its example arguments, and its dynamic shapes.
    """
    files = []
    for name, (module, args, shapes) in models.items():
        freeze(root / name, module, args, {}, shapes)
        generate(root / name, name, isa)
        files += sources(root / name)
    tables = root / "tables.cpp"
    tables.write_text(tables_source(list(models)), encoding="utf-8")
    objects = compile_sources([*files, tables], isa)
    link([*objects, compile_threads(root)[0]], root / "programs.so")
    return ctypes.CDLL(str(root / "programs.so"))


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("inputs", "outputs", "constants")]


class Compiled:
    """One instance of a compiled program, with weights of its own."""

    def __init__(self, library: ctypes.CDLL, program_id: str, folder: Path) -> None:
        create, counts, set_constants, self._run = (
            library[f"{name}_{program_id}"] for name in ("create", "counts", "set_constants", "run")
        )
        create.restype, counts.restype = ctypes.c_void_p, _Counts
        self._run.restype = ctypes.c_char_p
        self._instance = ctypes.c_void_p(create())
        manifest = read_manifest(folder / "compiled.json", CodeManifest)
        stored = weights_file.read_weights(folder / "weights.safetensors")
        self.constants = [
            stored[c.source].as_strided(c.shape, c.stride, c.offset)
            for c in manifest.codegen.constants
        ]
        self.counts = counts(self._instance)
        handles = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors(self.constants)
        set_constants(self._instance, _array(handles))

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        handles = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors(list(inputs))
        outputs = (ctypes.c_void_p * self.counts.outputs)()
        if (error := self._run(self._instance, _array(handles), outputs)) is not None:
            raise RuntimeError(error.decode())
        capsules = [_capsule(pointer) for pointer in outputs]
        return torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs(capsules)


def _array(capsules: Sequence[Any]) -> Any:
    pointers = [_pointer(c) for c in capsules]
    return (ctypes.c_void_p * len(pointers))(*pointers)


def _pointer(capsule: Any) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, None))


def _capsule(pointer: int) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(pointer, None, None)


def load_operators(folder: Path) -> None:
    """Compiles operators.cpp and registers its operators, with what tracing must know of them."""
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None
    source = Path(__file__).with_name("operators.cpp")
    target = folder / "liboperators.so"
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-w"]
    flags += [f"-I{TORCH_HEADERS}", f"-I{TORCH_HEADERS.parent / 'stable_headers'}"]
    libraries = [f"-L{TORCH / 'lib'}", "-l:libtorch_cpu.so"]
    subprocess.run([compiler, *flags, str(source), *libraries, "-o", str(target)], check=True)
    torch.ops.load_library(target)  # type: ignore[no-untyped-call]

    def copies(parts: list[torch.Tensor]) -> tuple[Any, ...]:
        return None, [torch.empty_like(part) for part in parts], torch.empty_like(parts[-1])

    def mixed(x: torch.Tensor) -> tuple[Any, ...]:
        return torch.empty_like(x), [torch.empty_like(x)]

    torch.library.register_fake("aoti_codegen_test::note", lambda *_, **__: None)
    torch.library.register_fake("aoti_codegen_test::copies", copies)
    torch.library.register_fake("aoti_codegen_test::mixed", mixed)
    torch.library.register_fake("aoti_codegen_test::scaled", lambda x, _: torch.empty_like(x))


_ENTRIES = """
namespace aoti_programs {{ extern const ::aoti::ProgramVTable {name}; }}
API void* create_{name}() {{ return aoti_programs::{name}.create(0); }}
API aoti::internal::ProgramCounts counts_{name}(void* instance) {{
  return aoti_programs::{name}.counts(instance);
}}
API void set_constants_{name}(void* instance, const AtenTensorHandle* handles) {{
  aoti_programs::{name}.set_constants(instance, handles);
}}
API const char* run_{name}(void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs) {{
  static thread_local std::string error;
  try {{
    aoti_programs::{name}.run(instance, inputs, outputs, nullptr);
    return nullptr;
  }} catch (const std::exception& e) {{
    error = e.what();
    return error.c_str();
  }}
}}
"""


def tables_source(program_ids: Sequence[str]) -> str:
    """C++ that hands out the programs, which are hidden outside of the library."""
    header = """
#include <exception>
#include <string>

#include "runtime/core/parallel.h"
#include "runtime/core/program.h"

#define API extern "C" __attribute__((visibility("default")))

API void set_cpus(int cpus) { aoti::internal::SetCpusForTesting(cpus); }
"""
    return header + "".join(_ENTRIES.format(name=name) for name in program_ids)
