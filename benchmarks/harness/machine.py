"""Describes the machine that the numbers were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VERSIONS = ("torch", "onnxruntime", "openvino", "llama_cpp_python", "numpy")


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fields(path: str) -> dict[str, str]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def warning(facts: dict[str, Any]) -> str:
    """What readers must know of a machine that did something else before; nothing if it did not."""
    if facts["load_before"] <= facts["cores"] / 2:
        return ""
    return " The machine did other work before the run: only ratios mean something, and roughly."


def describe() -> dict[str, Any]:
    """CPU, memory, system and versions."""
    cpu = _fields("/proc/cpuinfo")
    flags = set(cpu.get("flags", "").split())
    level = "x86-64-v4" if {"avx512f", "avx512bw", "avx512vl"} <= flags else "x86-64-v3"
    return {
        "cpu": cpu.get("model name", platform.machine()),
        "level": level if "avx2" in flags else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(_fields("/proc/meminfo")["MemTotal"].split()[0]) * 1024,
        "system": f"{platform.system()} {platform.release()}",
        "virtual": "hypervisor" in flags,
        "python": platform.python_version(),
        "versions": {name: version for name in VERSIONS if (version := version_of(name))},
        "load_before": round(os.getloadavg()[0], 2),
    }


def cpus_for(threads: int) -> set[int]:
    """The CPUs that a contestant with so many threads is kept on: the last ones."""
    return set(sorted(os.sched_getaffinity(0))[-threads:])


def installed_bytes(packages: Iterable[str]) -> int:
    """What packages take on disk, with all that they need."""
    todo, files = list(packages), {}
    seen = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for requirement in distribution.requires or []:
            if "extra ==" not in requirement:
                todo.append(_name_of(requirement))
        for file in distribution.files or []:
            path = Path(str(distribution.locate_file(file)))
            if path.is_file():
                files[path] = path.stat().st_size
    return sum(files.values())


def _name_of(requirement: str) -> str:
    for end, character in enumerate(requirement):
        if not (character.isalnum() or character in "._-"):
            return requirement[:end]
    return requirement
