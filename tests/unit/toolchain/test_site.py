"""The toolchain's environment, as actions see it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import shared_libraries

SITE = Path(os.environ["SITE"]).absolute()
LIBRARIES = SITE.parent / "lib"

SYSTEM = (
    *("libc.", "libm.", "librt.", "libdl.", "libpthread.", "libutil.", "ld-linux"),
    *("libgcc_s.", "libstdc++."),
)

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, setuptools, sympy, numpy, safetensors, torch._inductor.compile_fx
print(torch.__version__, torch.__file__.startswith(sys.argv[1]), torch.ones(2).sum().item())
"""


def test_torch_imports_without_environment_or_site() -> None:
    command = [sys.executable, "-I", "-S", "-B", "-c", PROGRAM, str(SITE)]
    result = subprocess.run(command, env={}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    version, own, total = result.stdout.split()
    assert version.split("+")[0] == "2.13.0"
    assert (own, total) == ("True", "2.0")


def test_libraries_find_each_other() -> None:
    libraries = sorted(LIBRARIES.glob("*.so*"))
    own = {library.name for library in libraries}
    assert {"libc10.so", "libtorch_cpu.so"} <= own
    # Nothing but what every Linux with a C++ compiler has may be looked for elsewhere.
    needed = {name for library in libraries for name in shared_libraries.needed_libraries(library)}
    assert [name for name in sorted(needed - own) if not name.startswith(SYSTEM)] == []
    assert ctypes.CDLL(str(LIBRARIES / "libtorch_cpu.so")).aoti_torch_device_type_cpu() == 0


def test_nothing_tells_about_the_installation() -> None:
    for name in ("INSTALLER", "REQUESTED", "direct_url.json"):
        assert list(SITE.glob(f"*.dist-info/{name}")) == []
    assert [p for p in (SITE / "bin").glob("*") if p.read_bytes()[:2] == b"#!"] == []


def test_files_that_no_step_reads_are_left_out() -> None:
    assert not (SITE / "torch" / "include").exists()
    assert not (SITE / "torch" / "test").exists()
    assert not list((SITE / "sympy").rglob("tests"))


def test_modules_are_compiled() -> None:
    assert list((SITE / "torch" / "__pycache__").glob("functional.cpython-*.pyc"))
    assert (SITE / "torch" / "bin" / "torch_shm_manager").exists()
