"""Installs a lock into `site-packages/` and lays out what C++ needs of it, for a repository rule.

usage: install_site.py LOCK [--torch | --without-torch]

The result depends on the wheels alone: pip's own traces, scripts with absolute paths and
timestamps are removed. Bytecode is compiled with hashes that no import checks: without bytecode,
`import torch` takes several times as long in every action.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from header_closure import header_closure
from header_patches import PATCHES, PatchError, patched
from pip_runner import run_pip
from shared_libraries import library_closure

SITE = Path("site-packages")
PIP_INSTALL = (
    *("install", "--no-compile", "--no-warn-script-location", "--ignore-installed"),
    *("--target", str(SITE)),
)

TORCH = re.compile(r"(?i)^torch\s*==")
UNVARIED_TORCH = re.compile(r"(?i)^(torch\s*==\s*[0-9.]+)(?=\s|;|$)")
CUDA_LIBRARY = re.compile(r"(?i)^(nvidia-|cuda-|triton\b)")

# Files that pip writes beside a wheel's own, which tell about this installation.
PIP_TRACES = ("INSTALLER", "REQUESTED", "direct_url.json")

# The C ABI of AOTInductor and what generated code includes; header_closure adds what these include.
TORCH_HEADERS = (
    "torch/csrc/inductor/aoti_include/common.h",
    "torch/csrc/inductor/aoti_include/cpu.h",
    "torch/csrc/inductor/aoti_include/cuda.h",
    "torch/csrc/inductor/aoti_runtime/*.h",
    "torch/csrc/inductor/aoti_torch/c/*.h",
    "torch/csrc/inductor/aoti_torch/generated/*.h",
    "torch/csrc/inductor/cpp_prefix.h",
    "torch/csrc/stable/c/*.h",
)


def logical_lines(lock: Path) -> list[str]:
    """The requirements and options of a lock, one per line, without comments."""
    text = re.sub(r"(^|\s)#.*", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = (" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def install(lock: Path, *, without_torch: bool = False) -> None:
    """Installs a lock. Of a torch pinned without variant (`2.13.0`), the CPU build is preferred.

    A lock may allow several builds of one torch. When pip must check hashes it prefers the builds
    of an index to those of `--find-links`, so it has to be asked for the CPU build by its full
    version (`2.13.0+cpu`). Then the gigabytes of libraries for CUDA alone are left out.
    """
    shutil.rmtree(SITE, ignore_errors=True)
    requirements = logical_lines(lock)
    if without_torch:
        requirements = [r for r in requirements if not (TORCH.match(r) or CUDA_LIBRARY.match(r))]
    else:
        requirements = install_cpu_torch(requirements)
    if all(line.startswith("-") for line in requirements):
        SITE.mkdir(exist_ok=True)
        return
    if (trouble := run_pip(PIP_INSTALL, requirements)) is not None:
        sys.exit(f"pip could not install {lock}:\n{trouble}")


def install_cpu_torch(requirements: list[str]) -> list[str]:
    """Installs the CPU build if torch is pinned without variant. Returns what is left to do."""
    torch = next((line for line in requirements if UNVARIED_TORCH.match(line)), None)
    if torch is None:
        return requirements
    options = [line for line in requirements if line.startswith("-")]
    trouble = run_pip(PIP_INSTALL, [*options, UNVARIED_TORCH.sub(r"\1+cpu", torch)])
    if trouble is not None:
        shutil.rmtree(SITE, ignore_errors=True)
        return requirements
    return [line for line in requirements if line != torch and not CUDA_LIBRARY.match(line)]


def remove_traces(site: Path) -> None:
    """Removes what differs between two installations of the same wheels."""
    for folder in list(site.rglob("__pycache__")):
        shutil.rmtree(folder)
    # Programs stay, scripts go: these name an interpreter by its absolute path.
    for script in list((site / "bin").glob("*")):
        if script.is_file() and script.read_bytes()[:2] == b"#!":
            script.unlink()
    for info in sorted(site.glob("*.dist-info")):
        for name in PIP_TRACES:
            (info / name).unlink(missing_ok=True)
        record = info / "RECORD"
        if record.exists():
            record.write_text("".join(sorted(_kept_lines(record, site))), encoding="utf-8")


def _kept_lines(record: Path, site: Path) -> Iterator[str]:
    for line in record.read_text(encoding="utf-8").splitlines():
        # path,hash,size; a path with a comma is quoted.
        path = line[1:].split('"')[0] if line.startswith('"') else line.split(",")[0]
        if not path.startswith("../") and (site / path).exists():
            yield line + "\n"


def compile_tree(site: Path) -> None:
    """Writes a .pyc for each module outside of test folders, the same bytes every time.

    Whether marshal writes an object as shared depends on its reference count, and so on what was
    compiled before. Each folder is therefore compiled by its own process, forked from one state.
    """
    folders = sorted({path.parent for path in site.rglob("*.py")})
    running: set[int] = set()
    for folder in folders:
        if "tests" in folder.parts:
            continue
        if len(running) >= (os.cpu_count() or 1):
            running.discard(os.wait()[0])
        child = os.fork()
        if child == 0:
            _compile_and_exit(folder)
        running.add(child)
    while running:
        running.discard(os.wait()[0])


def _compile_and_exit(folder: Path) -> None:
    try:
        for source in sorted(folder.glob("*.py")):
            _compile(source)
    finally:
        os._exit(0)


def _compile(source: Path) -> None:
    # Python sets the path in the code object to the real one at import.
    name = str(source.relative_to(SITE))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    # Wheels carry templates and code for other Pythons: such a file fails if it is imported.
    with contextlib.suppress(py_compile.PyCompileError, ValueError, RecursionError):
        py_compile.compile(str(source), dfile=name, doraise=True, invalidation_mode=mode)


def link_or_copy(source: Path, target: Path) -> None:
    """A second name for a file: the libraries alone are hundreds of megabytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


def lay_out_torch(site: Path) -> None:
    """Makes `lib/`, `torch_headers/` and `pybind11_headers/`, for the C++ side."""
    for library in library_closure(site, ["libtorch_cpu.so", "libtorch_cuda.so"]):
        link_or_copy(library, Path("lib") / library.name)
    include = site / "torch" / "include"
    for header in header_closure(include, TORCH_HEADERS):
        target = Path("torch_headers") / header
        if header in PATCHES:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(patched(header, (include / header).read_text(encoding="utf-8")))
        else:
            link_or_copy(include / header, target)
    pybind11 = site / "pybind11" / "include"
    for path in sorted(pybind11.rglob("*.h")):
        link_or_copy(path, Path("pybind11_headers") / path.relative_to(pybind11))


def torch_version(site: Path) -> str:
    """The full version of the torch that was installed, and proof that it can be imported."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import torch; print(torch.__version__)"
    command = [sys.executable, "-I", "-S", "-B", "-c", program, str(site.absolute())]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        last = "\n".join(result.stderr.strip().splitlines()[-3:])
        sys.exit(
            f"the locked torch was installed but can't be imported:\n{last}\n"
            "If a CUDA library is missing: pip took a CUDA build of torch, and the lock has none\n"
            "of its libraries (nvidia-*). Let pip find the CPU build (PIP_EXTRA_INDEX_URL), or\n"
            "add the libraries to the lock: see docs/toolchain.md of rules_aoti."
        )
    return result.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lock", type=Path)
    torch = parser.add_mutually_exclusive_group()
    torch.add_argument("--torch", action="store_true", help="lay out its libraries and headers")
    torch.add_argument("--without-torch", action="store_true", help="leave out torch and CUDA")
    args = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        sys.exit("install_site.py needs PYTHONHASHSEED=0: the order of sets ends up in bytecode")
    install(args.lock, without_torch=args.without_torch)
    remove_traces(SITE)
    compile_tree(SITE)
    if args.torch:
        try:
            lay_out_torch(SITE)
        except PatchError as error:
            sys.exit(f"the locked torch is not the one that rules_aoti knows: {error}")
        print(torch_version(SITE))


if __name__ == "__main__":
    main()
