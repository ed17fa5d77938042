"""Two builds of the same models: which differences count."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import compare_artifacts
import pytest

_BUILD_ID = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"


def _zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"text", b"text", "same"),
        (b"text", b"next", "different"),
        (b"text", None, "missing"),
        (None, b"text", "new"),
        (b"driver " + b"a1" * 32, b"driver " + b"b2" * 32, "but provenance"),
        (b"driver " + b"a1" * 32, b"driver " + b"b2" * 31, "different"),
        (b"driver " + b"a1" * 33, b"driver " + b"b2" * 33, "different"),
        (_BUILD_ID + b"\n" * 20 + b"code", _BUILD_ID + b"y" * 20 + b"code", "but provenance"),
        (_BUILD_ID + b"x" * 20 + b"code", _BUILD_ID + b"y" * 20 + b"core", "different"),
        (_zip(note=b"a1" * 32, code=b"1"), _zip(note=b"b2" * 32, code=b"1"), "but provenance"),
        (_zip(note=b"a1" * 32, code=b"1"), _zip(note=b"b2" * 32, code=b"2"), "different"),
        (_zip(code=b"1"), _zip(kode=b"1"), "different"),
    ],
)
def test_verdicts(before: bytes | None, after: bytes | None, expected: str) -> None:
    assert compare_artifacts.verdict(before, after) == expected


def _events(path: Path, *files: Path) -> Path:
    named = [{"name": f"models/{file.name}", "uri": file.as_uri()} for file in files]
    sets = [{"files": named}, {}]
    lines = [{"id": {"started": {}}}, *({"namedSetOfFiles": each} for each in sets)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_outputs_of_a_build(tmp_path: Path) -> None:
    """Folders are looked into, and names with special characters are found."""
    header, folder = tmp_path / "a b.h", tmp_path / "kernels.cpp"
    header.write_text("1", encoding="utf-8")
    (folder / "more").mkdir(parents=True)
    (folder / "more" / "kernel.cpp").write_text("2", encoding="utf-8")
    before = compare_artifacts.outputs(_events(tmp_path / "1.json", header, folder))
    assert before == {
        "models/a b.h": header,
        "models/kernels.cpp/more/kernel.cpp": folder / "more" / "kernel.cpp",
    }
    after = compare_artifacts.outputs(_events(tmp_path / "2.json", header))
    assert compare_artifacts.compare(before, after) == {
        "missing": ["models/kernels.cpp/more/kernel.cpp"],
        "same": ["models/a b.h"],
    }
