"""The report on a GPU, the memory that nvidia-smi tells, and how contestants there are started."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness import contestants, cuda_report, gpu
from benchmarks.harness.config import Model
from benchmarks.harness.results import Latency, Results, Start
from benchmarks.tests.example import MACHINE, MODEL, sample

LLM = Model.from_json(
    MODEL
    | {
        "name": "llm_cuda",
        "title": "LLM",
        "precision": "float32",
        "build_precision": "float32",
        "cases": {"decode": {}},
        "start": "decode",
        "tokens": {"decode": 1},
        "runners": {"cuda": "/r", "cuda-graphs": "/r"},
    }
)


def results(emulator: bool = False) -> Results:
    machine = MACHINE | {"gpu": "Some GPU", "cuda": "13.0", "emulator": emulator}
    models = {"llm": {"title": "LLM", "cases": {"decode": {}}, "tokens": {"decode": 1}}}
    latencies = [
        Latency("llm", "decode", 2, "cuda", sample(0.004)),
        Latency("llm", "decode", 2, "cuda-graphs", sample(0.002)),
        Latency("llm", "decode", 2, "eager-cuda", sample(0.01)),
        Latency("llm", "decode", 2, "compile-cuda", None, 0.7, "WRONG: error 7.0e-01"),
    ]
    starts = [
        Start("llm", "cuda", sample(0.5), 100_000_000, gpu_memory=800_000_000),
        Start("llm", "eager-cuda", sample(5.0), 900_000_000, gpu_memory=1_200_000_000),
    ]
    return Results(machine, models, {}, latencies, starts)


def test_ratios() -> None:
    text = cuda_report.render(results())
    assert "Some GPU, CUDA 13.0; Some <CPU>, 2 CPUs. Numbers without a unit are relative" in text
    lines = [line.split() for line in text.splitlines() if line.startswith("LLM")]
    assert lines == [
        ["LLM,", "decode", "4.00", "ms", "0.50", "2.50", "WRONG", "-"],
        ["LLM,", "decode", "250/s", "2.00", "0.40", "WRONG", "-"],
        ["LLM", "500", "ms", "-", "10.00", "-", "-"],
        ["LLM", "800", "MB", "-", "1.50", "-", "-"],
        ["LLM", "100", "MB", "-", "9.00", "-", "-"],
    ]
    assert "compile-cuda: WRONG: error 7.0e-01 (llm)" in text


def test_as_a_page() -> None:
    page = cuda_report.markdown(results())
    assert "| LLM, decode | 4.00 ms | 0.50 | 2.50 | WRONG | - |" in page
    assert "- compile-cuda: WRONG: error 7.0e-01 (llm)" in page


def test_results_are_read_again() -> None:
    text = results().to_json()
    assert Results.from_json(text).to_json() == text


def test_the_emulator_is_named() -> None:
    text = cuda_report.render(results(emulator=True))
    assert "This is the emulator of the driver: its times mean nothing." in text


@pytest.mark.parametrize(
    ("script", "expected"),
    [("echo 1234", 1234 * 1024 * 1024), ("echo '[N/A]'", None), ("exit 9", None)],
)
def test_memory_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: int | None
) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert gpu.used_memory() == expected


def test_without_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.used_memory() is None


def setting(root: Path, python: str) -> contestants.Setting:
    return contestants.Setting(root, root, {}, "x86-64-v3", "launcher", python)


def test_graphs_are_a_flag(tmp_path: Path) -> None:
    found = setting(tmp_path, "")
    assert contestants.command("cuda-graphs", found, LLM, tmp_path, 2) == [
        "/r",
        "--threads=2",
        "--callers=1",
        "--cuda-graphs",
    ]
    assert "--cuda-graphs" not in contestants.command("cuda", found, LLM, tmp_path, 2)
    assert "--python" in contestants.why_not("eager-cuda", found, LLM, {})


def test_the_users_python_imports_the_repository_alone(tmp_path: Path) -> None:
    peers = tmp_path / "benchmarks/peers"
    peers.mkdir(parents=True)
    (peers / "other.py").write_text("NAME = 'other'\n")
    (peers / "cuda_eager.py").write_text(
        "import sys\nfrom benchmarks.peers import other\nprint(other.NAME, sys.path[0], sys.argv)\n"
    )
    found = setting(tmp_path, sys.executable)
    assert contestants.why_not("eager-cuda", found, LLM, {}) == ""
    command = contestants.command("eager-cuda", found, LLM, tmp_path, 2)
    printed = subprocess.check_output(command, text=True, env={"PYTHONPATH": "/nowhere"})
    assert printed.startswith(f"other {tmp_path} ['{peers}/cuda_eager.py', '--model', ")
