"""Compiles what several tests use once."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.unit.driver.inductor import harness, models

# program -> the function of models.py that makes its model
PROGRAMS = {
    name: name
    for name in (
        *("mlp", "odd", "cached", "numbers"),
        *("image", "dense", "enlarged", "concatenated"),
    )
}
# Inductor writes plain loops in place of vectors for it.
BASELINE = {f"{name}_baseline": name for name in ("image", "enlarged")}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per model with its graph, weights, sources; all programs in one programs.so."""
    root = tmp_path_factory.mktemp("programs")
    sources: dict[str, list[Path]] = {"x86-64": [], harness.ISA: []}
    for isa, programs in ((harness.ISA, PROGRAMS), ("x86-64", BASELINE)):
        for name, model in programs.items():
            module, args, kwargs, shapes = getattr(models, model)()
            harness.freeze(root / name, module, args, kwargs, shapes)
            harness.generate(root / name, name, isa=isa)
            sources[isa] += harness.sources(root / name)
    tables = root / "tables.cpp"
    tables.write_text(harness.tables_source([*PROGRAMS, *BASELINE]), encoding="utf-8")
    sources[harness.ISA].append(tables)
    objects = [o for isa, files in sources.items() for o in harness.compile_sources(files, isa)]
    threads, openmp = harness.compile_threads(root)
    harness.link([*objects, threads], root / "programs.so")
    kernels = [path for path in objects if path.parent == root / "odd" / "kernels"]
    stock = harness.compile_for_stock(root / "odd")
    harness.link([*stock, *kernels, openmp], root / "odd" / "libodd.so")
    return root


@pytest.fixture(scope="session")
def library(built: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(built / "programs.so"))
