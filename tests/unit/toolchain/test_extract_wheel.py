"""The extractor of files out of wheels."""

from __future__ import annotations

import zipfile
from pathlib import Path

import extract_wheel
import pytest


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("p/weights.bin", b"\0\1\2")
        archive.writestr("p/__init__.py", b"")
    return path


def test_extracts_under_the_new_name(wheel: Path) -> None:
    extract_wheel.extract(wheel, {"p/weights.bin": "model/w.bin"})
    assert Path("model/w.bin").read_bytes() == b"\0\1\2"
    assert not Path("p").exists()


def test_missing_member_lists_what_there_is(wheel: Path) -> None:
    with pytest.raises(SystemExit) as failure:
        extract_wheel.extract(wheel, {"p/w.bin": "w.bin"})
    assert str(failure.value) == (
        "p-1-py3-none-any.whl has no file p/w.bin. Its files:\n  p/weights.bin\n  p/__init__.py"
    )
