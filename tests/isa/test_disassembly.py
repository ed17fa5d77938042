"""The machine code of a model for each instruction set."""

from __future__ import annotations

import functools
import os
import subprocess


@functools.cache
def code(level: str) -> str:
    return subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", os.environ[level]],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_baseline_has_sse_alone() -> None:
    assert "%xmm" in code("V1")
    assert "%ymm" not in code("V1")
    assert "%zmm" not in code("V1")


def test_v3_has_avx2_and_no_avx512() -> None:
    assert "%ymm" in code("V3")
    assert "%zmm" not in code("V3")
    assert "%k1" not in code("V3")  # mask registers


def test_v4_has_avx512() -> None:
    assert "%zmm" in code("V4")


def test_nothing_wide_runs_before_main() -> None:
    """Where nothing has looked at the CPU yet."""
    for level in ("V3", "V4"):
        functions = code(level).split("\n\n")
        early = [f for f in functions if "<_GLOBAL__sub_I_" in f or "<__static_init" in f]
        assert early, "no initialisers found: how does this toolchain name them?"
        for function in early:
            assert "%ymm" not in function, function
            assert "%zmm" not in function, function
            assert "\tv" not in function, function  # AVX encodings
