"""Headers out of a torch that the user brings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import header_patches
import pytest
import torch_headers

# Of the repository that the headers are laid out in when torch comes from a lock.
_LAID_OUT = "torch_site"


def _read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _laid_out() -> Path:
    repositories = Path(os.environ["TEST_SRCDIR"]).iterdir()
    (found,) = (path for path in repositories if path.name.endswith(_LAID_OUT))
    return found / "torch_headers"


def test_the_headers_are_those_of_the_lock() -> None:
    """torch's two kinds and pybind11's, out of a folder with torch's whole package."""
    folders = {Path(folder).suffix: Path(folder) for folder in os.environ["FOLDERS"].split()}
    own, pybind11 = _read(folders[".torch_headers"]), _read(folders[".pybind11_headers"])
    expected = _read(_laid_out())
    assert len(expected) > 100
    assert own.keys() == expected.keys()
    assert [name for name in own if own[name] != expected[name]] == []
    assert "pybind11/pybind11.h" in pybind11
    stable = _read(folders[".stable_headers"])
    assert "torch/csrc/stable/ops.h" in stable
    assert not stable.keys() & own.keys()
    # It is changed as well.
    assert b"= new std::string" not in stable["torch/csrc/stable/stableivalue_conversions.h"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    torch = tmp_path / "site" / "torch"
    (torch / "include" / "torch").mkdir(parents=True)
    container = tmp_path / "site" / torch_headers.CONTAINER
    container.parent.mkdir(parents=True)
    container.write_text("container", encoding="utf-8")
    (torch / "version.py").write_text("__version__ = '2.13.0+cpu'\n", encoding="utf-8")
    return tmp_path / "site"


def _run(monkeypatch: pytest.MonkeyPatch, site: Path, version: str = "2.13.0") -> dict[str, bytes]:
    out = site.parent / "out"
    flags = ["--target=//:torch", f"--version={version}", f"--out={out}"]
    flags += [f"--stable={site.parent / 'stable'}", f"--pybind11={site.parent / 'pybind11'}"]
    flags.append(f"--site={site}")
    monkeypatch.setattr(sys, "argv", ["torch_headers.py", *flags])
    torch_headers.main()
    return _read(out)


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu"])
def test_a_version(monkeypatch: pytest.MonkeyPatch, site: Path, version: str) -> None:
    assert _run(monkeypatch, site, version) == {torch_headers.CONTAINER: b"container"}


def test_another_version(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    expected = (
        '^//:torch: version is "2.12.0", but the torch of its packages is 2.13.0\\+cpu. '
        'Write version = "2.13.0".$'
    )
    with pytest.raises(SystemExit, match=expected):
        _run(monkeypatch, site, "2.12.0")


def test_a_package_without_headers(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    (site / torch_headers.CONTAINER).unlink()
    expected = "^//:torch: none of its packages has torch with torch/include"
    with pytest.raises(SystemExit, match=expected):
        _run(monkeypatch, site)


def test_a_header_that_another_torch_has(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    (header, *_) = header_patches.PATCHES
    path = site / "torch" / "include" / header
    path.parent.mkdir(parents=True)
    path.write_text("// another text\n", encoding="utf-8")
    monkeypatch.setattr(torch_headers, "TORCH_HEADERS", (header,))
    with pytest.raises(SystemExit, match="its torch is not the version that rules_aoti knows"):
        _run(monkeypatch, site)
