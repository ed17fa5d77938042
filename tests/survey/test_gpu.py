"""docs/cuda_architectures.md says what becomes of some architectures. Needs Triton."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if site := os.environ.get("TRITON_SITE"):
    sys.path.append(os.path.abspath(site))

from tests.survey import architectures, gpu

TEXT = gpu.PAGE.read_text(encoding="utf-8")
ROWS = gpu.read(TEXT)


@pytest.mark.parametrize("name", ["torch.nn/conv1d_dilated", "torch.nn/gru_dynamic"])
def test_row(name: str, tmp_path: Path) -> None:
    assert gpu.row(gpu.examine(name, tmp_path)) == ROWS[name]


def test_the_page_has_what_its_rows_say() -> None:
    assert ROWS.keys() <= architectures.BY_ID.keys()
    assert gpu.page(ROWS, architectures.BY_ID) == TEXT


def test_reasons_are_read_back() -> None:
    found = {"failed": "codegen: DriverError: an | of `x`\n is none"}
    rows = {"torch.nn/conv1d": gpu.row(found), "torch.nn/gru_cell": gpu.Row()}
    assert rows["torch.nn/conv1d"].failed == "codegen: DriverError: an ' of 'x' is none"
    assert gpu.read(gpu.page(rows, architectures.BY_ID)) == rows
    refused = gpu.row({"failed": "codegen: it is operator aten.gcd.default of"})
    assert refused == gpu.Row(("aten.gcd.default",))
