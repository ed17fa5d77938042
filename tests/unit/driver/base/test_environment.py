"""The environment of a step: of the machine, only what the step can't run without."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
from aoti_driver.base import environment


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))


def capability(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, machine: str) -> str:
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\nflags\t\t: fpu {flags} sse\n\nprocessor\t: 1\n", "utf-8")
    monkeypatch.setattr(environment, "_CPU_INFO", info)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    environment.purge()
    return os.environ["ATEN_CPU_CAPABILITY"]


def test_every_machine_computes_with_the_same_vectors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert capability(monkeypatch, tmp_path, "avx avx2 fma", "x86_64") == "avx2"
    assert capability(monkeypatch, tmp_path, "fma avx2 avx512f", "x86_64") == "avx2"
    assert capability(monkeypatch, tmp_path, "avx", "x86_64") == "default"
    assert capability(monkeypatch, tmp_path, "", "aarch64") == "default"


def test_nothing_else_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "7")
    monkeypatch.setitem(os.environ, "ATEN_CPU_CAPABILITY", "avx512")
    environment.purge(portable=False)
    assert "OMP_NUM_THREADS" not in os.environ and "ATEN_CPU_CAPABILITY" not in os.environ
