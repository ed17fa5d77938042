"""The benchmark on a GPU in the emulator of the driver, with the smallest model."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

from benchmarks.tests.programs import path_of, run, start

# Parts of glibc: https://sourceware.org/glibc/
GLIBC = re.compile(r"(?:ld-linux-[\w-]+|libc|libm|libdl|libpthread|librt)\.so\.\d+")


def nvidia_smi(folder: Path) -> str:
    """A PATH with an nvidia-smi that finds more memory in use each time."""
    program = folder / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho x >> {folder}/asked\nwc -l < {folder}/asked\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{program.parent}:{os.environ['PATH']}"


def test_in_the_emulator(tmp_path: Path) -> None:
    driver = str(path_of("EMULATOR").parent)
    printed = run("CUDA_SMOKE", tmp_path, LD_LIBRARY_PATH=driver, PATH=nvidia_smi(tmp_path))
    assert "This is the emulator of the driver: its times mean nothing." in printed
    results = json.loads((tmp_path / "out/cuda.json").read_text())
    reason = "no interpreter with a torch for CUDA: give one as --python"
    problems = {(e["contestant"], e["problem"]) for e in results["latencies"] + results["starts"]}
    assert problems == {
        ("cuda", ""),
        ("cuda-graphs", ""),
        ("eager-cuda", reason),
        ("compile-cuda", reason),
        ("compile-graphs-cuda", reason),
    }
    errors = [entry["error"] for entry in results["latencies"] if not entry["problem"]]
    assert len(errors) == 4 and max(errors) < 1e-5
    ours = [entry for entry in results["starts"] if not entry["problem"]]
    assert [entry["gpu_memory"] for entry in ours] == [1024 * 1024] * 2
    row = re.search(r"^MLP, batch8 +[\d.]+ [mµ]?s +[\d.]+ +- +- +-$", printed, re.MULTILINE)
    assert row, printed


def test_a_python_without_a_torch_for_cuda(tmp_path: Path) -> None:
    """It is told, and the others are measured."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no module named torch' >&2\nexit 1\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    driver = str(path_of("EMULATOR").parent)
    flags = ["--contestants", "cuda", "eager-cuda", "--python", str(python)]
    printed = run("CUDA_SMOKE", tmp_path, *flags, LD_LIBRARY_PATH=driver)
    assert "eager-cuda: exit status 1: no module named torch (mlp_cuda)" in printed


def test_without_a_gpu(tmp_path: Path) -> None:
    result = start("CUDA_SMOKE", tmp_path, LD_LIBRARY_PATH=str(path_of("NO_DRIVER").parent))
    assert result.returncode == 1
    assert (
        "//benchmarks:cuda measures on an NVIDIA GPU, and this machine has no us" in result.stderr
    )
    assert 'see "On a machine that builds nothing" in docs/cuda.md' in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_program_needs_the_c_library_alone() -> None:
    """And, when a model is loaded, libcuda.so.1, which it looks for itself."""
    runner = path_of("RUNNER")
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", str(runner)],
        env=os.environ | {"LC_ALL": "C"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    assert libraries
    assert [name for name in libraries if not GLIBC.fullmatch(name)] == []
    assert b"libcuda.so.1" in runner.read_bytes()
