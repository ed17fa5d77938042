"""Checks that dtypes.txt, from which builds choose what a program runs on, matches tested calls."""

from __future__ import annotations

from pathlib import Path

import dtype_coverage
import harness
import pytest
from aoti_driver.artifacts.missing_functions import parse_dtypes

slim = harness.load()
RUNTIME = Path(__file__).parents[1]

# Functions that create or change tensor handles without reading an element.
HANDLES = [
    "aoti_torch_cpu_resize_",
    "aoti_torch_cpu_resize_as_",
    "aoti_torch_cpu_set__source_Tensor",
]


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    slim.library.aoti_slim_set_cpu_level(-1)
    return dtype_coverage.table(slim)


def test_the_table_matches_the_calls(found: dict[str, list[str]]) -> None:
    written = (RUNTIME / "dtypes.txt").read_text(encoding="utf-8")
    listed = {name: list(dtypes) for name, dtypes in parse_dtypes(written).items()}
    for name in sorted({*found, *listed}):
        assert found.get(name) == listed.get(name), (
            f"{name}: write what dtype_coverage.py prints to runtime/slim/dtypes.txt"
        )
    assert dtype_coverage.text(found) == written


def test_every_operator_was_run() -> None:
    functions = set((RUNTIME / "functions.txt").read_text(encoding="utf-8").split())
    assert dtype_coverage.unlisted(functions) == HANDLES


def test_dtypes_that_models_rely_on(found: dict[str, list[str]]) -> None:
    assert "int8,uint8->int32" in found["aoti_torch_cpu__int_mm_out"]
    assert {"bfloat16->bfloat16", "float16->float16", "float32->float32"} <= set(
        found["aoti_torch_cpu_mm_out"]
    )
