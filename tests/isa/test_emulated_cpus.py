"""On CPUs that lack instructions: code they can run, or an error, never an illegal instruction."""

from __future__ import annotations

import os
import signal
import subprocess

# Outputs are rows of a softmax: three rows, so their sum is 3.
RUNS = "runs {isa}, 3.000"


def on(cpu: str) -> dict[str, str]:
    """What the program says, run on a CPU of this kind."""
    run = subprocess.run(
        [os.environ["EMULATOR"], os.environ["PROGRAM"]],
        env={**os.environ, "QEMU_CPU": cpu},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"exit code {run.returncode}: {run.stdout}{run.stderr}"
    return dict(line.split(": ", 1) for line in run.stdout.splitlines())


def test_the_emulator_lacks_what_the_cpu_lacks() -> None:
    """Otherwise this file shows nothing: code for more than Nehalem dies on it."""
    run = subprocess.run(
        [os.environ["EMULATOR"], os.environ["ILLEGAL"]],
        env={**os.environ, "QEMU_CPU": "Nehalem"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == -signal.SIGILL, run.stdout


def test_before_avx() -> None:
    said = on("Nehalem")
    assert said["kernels"] == "baseline"
    assert said["plain"] == RUNS.format(isa="x86-64")
    assert said["wide"] == (
        "UnsupportedCpu: every: this CPU has none of the instruction sets that the model was "
        "compiled for: x86-64-v4 (the CPU lacks AVX2, FMA, BMI1, BMI2, AVX512F, AVX512BW, "
        "AVX512CD, AVX512DQ, AVX512VL); x86-64-v3 (the CPU lacks AVX2, FMA, BMI1, BMI2). Use "
        "another machine, or build //tests/isa:every for a lower instruction set too: "
        "add it to isas, or leave isa out for any CPU"
    )


def test_avx_without_avx2() -> None:
    said = on("IvyBridge")
    assert said["kernels"] == "baseline"
    assert said["plain"] == RUNS.format(isa="x86-64")
    assert said["wide"].startswith("UnsupportedCpu: ")


def test_avx2_without_avx512() -> None:
    said = on("Haswell")
    assert said["kernels"] == "x86-64-v3"
    assert said["plain"] == RUNS.format(isa="x86-64")
    assert said["wide"] == RUNS.format(isa="x86-64-v3")
