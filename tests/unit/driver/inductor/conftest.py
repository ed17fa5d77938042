"""Compiles what several tests use once."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.unit.driver.inductor import harness, models

PROGRAMS = ("mlp", "odd", "cached", "numbers", "image")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per model with its graph, weights, sources; all programs in one programs.so."""
    root = tmp_path_factory.mktemp("programs")
    sources = []
    for name in PROGRAMS:
        module, args, kwargs, shapes = getattr(models, name)()
        harness.freeze(root / name, module, args, kwargs, shapes)
        harness.generate(root / name, name)
        sources += harness.sources(root / name)
    tables = root / "tables.cpp"
    tables.write_text(harness.tables_source(PROGRAMS), encoding="utf-8")
    objects = harness.compile_sources([*sources, tables])
    threads, openmp = harness.compile_threads(root)
    harness.link([*objects, threads], root / "programs.so")
    kernels = [path for path in objects if path.parent == root / "odd" / "kernels"]
    stock = harness.compile_for_stock(root / "odd")
    harness.link([*stock, *kernels, openmp], root / "odd" / "libodd.so")
    return root


@pytest.fixture(scope="session")
def library(built: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(built / "programs.so"))
