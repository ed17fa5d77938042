"""The changes to torch's headers: each applies to the locked torch, once."""

from __future__ import annotations

import os
import zipfile

import pytest
from header_patches import PATCHES, PatchError, patched


def original(header: str) -> str:
    (wheel,) = (path for path in os.environ["WHEELS"].split() if "/torch-" in path)
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"torch/include/{header}").decode()


@pytest.mark.parametrize("header", sorted(PATCHES))
def test_applies_to_the_locked_torch(header: str) -> None:
    text = original(header)
    changed = patched(header, text)
    assert changed != text
    for _, new in PATCHES[header]:
        assert new in changed


def test_no_regular_expressions_are_left() -> None:
    header = "torch/csrc/inductor/aoti_runtime/model_base.h"
    assert "regex" not in patched(header, original(header))


def test_texts_among_the_arguments_of_operators_are_freed() -> None:
    header = "torch/csrc/stable/stableivalue_conversions.h"
    assert "= new std::string" in original(header)
    assert "= new std::string" not in patched(header, original(header))


def test_another_torch_is_an_error() -> None:
    header = sorted(PATCHES)[0]
    with pytest.raises(PatchError, match="expected once, found 0 times"):
        patched(header, "#pragma once\n")


def test_other_headers_stay() -> None:
    assert patched("torch/csrc/other.h", "text") == "text"
