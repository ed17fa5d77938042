"""A model's files hold their contents, and nothing about the machine that built them."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.artifacts.artifacts import MODELS, artifact

# Where builds happen: a sandbox, an execution root, a home, a temporary folder.
BUILD_PATHS = re.compile(
    rb"/(?:sandbox|execroot|bazel-out|processwrapper-sandbox)/|/home/\w+|/root/|/tmp/\w|/var/tmp/\w"
)

SUFFIXES = [".pt2", ".export.pt2", ".manifest.json", ".report.txt", ".weights.safetensors"]


def readelf(library: Path, *flags: str) -> str:
    env = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        ["readelf", "--wide", *flags, str(library)],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize("model", MODELS)
def test_library_finds_torch_by_name_alone(model: str) -> None:
    dynamic = readelf(artifact(model, ".so", "lib"), "--dynamic")
    assert "(NEEDED)             Shared library: [libtorch_cpu.so]" in dynamic
    assert f"Library soname: [lib{model}.so]" in dynamic
    assert "(RPATH)" not in dynamic
    assert "(RUNPATH)" not in dynamic


@pytest.mark.parametrize("model", MODELS)
def test_library_has_no_executable_stack(model: str) -> None:
    segments = readelf(artifact(model, ".so", "lib"), "--program-headers")
    stack = [line for line in segments.splitlines() if "GNU_STACK" in line]
    assert len(stack) == 1
    assert " RW " in stack[0], stack[0]
    assert "E" not in stack[0].split("GNU_STACK")[1], stack[0]


@pytest.mark.parametrize("model", MODELS)
def test_library_exports_the_c_interface_alone(model: str) -> None:
    """Whatever else it showed would collide with the next model in one process."""
    symbols = readelf(artifact(model, ".so", "lib"), "--dyn-syms")
    exported = {
        fields[7].split("@")[0]
        for fields in (line.split() for line in symbols.splitlines())
        if len(fields) >= 8 and fields[4] == "GLOBAL" and fields[6] != "UND"
    }
    assert {"AOTInductorModelContainerRun", "AOTInductorGetLastError"} <= exported
    assert [name for name in sorted(exported) if not name.startswith("AOTInductor")] == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("suffix", [".so", *SUFFIXES])
def test_no_path_of_the_build_machine(model: str, suffix: str) -> None:
    file = artifact(model, suffix, "lib" if suffix == ".so" else "")
    content = file.read_bytes()
    assert content, f"{file.name} is empty"
    found = BUILD_PATHS.search(content)
    assert not found, content[max(0, found.start() - 80) : found.end() + 80]


@pytest.mark.parametrize("model", MODELS)
def test_manifest_and_report_agree(model: str) -> None:
    program = json.loads(artifact(model, ".manifest.json").read_text(encoding="utf-8"))["program"]
    report = artifact(model, ".report.txt").read_text(encoding="utf-8")
    assert program["name"] == model
    assert program["label"] == f"//{MODELS[model]}:{model}"
    for tensor in [*program["inputs"], *program["outputs"]]:
        assert tensor["name"] in report
    assert program["graph_sha256"] in report


@pytest.mark.parametrize("model", MODELS)
def test_weights_are_aligned(model: str) -> None:
    """A program maps the file and computes with it where it lies.

    safetensors allows no gaps: a tensor is aligned to 64 bytes, or to what divides its size.
    """
    content = artifact(model, ".weights.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    program = json.loads(artifact(model, ".manifest.json").read_text(encoding="utf-8"))["program"]
    assert sorted(header) == sorted(constant["name"] for constant in program["constants"])
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        assert (8 + length + begin) % math.gcd(64, end - begin) == 0, name
