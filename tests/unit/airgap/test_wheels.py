"""Wheels through pip, for which a script stands in."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from airgap import wheels
from airgap.base import AirgapError

WHEEL = wheels.Wheel("thing", "1.0", hashlib.sha256(b"wheel").hexdigest())

# Fails as often as the file "faults" has lines, then saves $CONTENT as a wheel.
_PIP = """#!/bin/sh
echo "$@" >>"{folder}/calls"
for word in "$@"; do case $word in --dest=*) dest=${{word#--dest=}};; esac; done
if [ -s "{folder}/faults" ]; then
  sed -i 1d "{folder}/faults"
  echo "no such host" >&2
  exit 1
fi
cat "{folder}/content" >"$dest/thing-1.0-py3-none-any.whl"
"""


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "pip"
    script.write_text(_PIP.format(folder=tmp_path))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "content").write_bytes(b"wheel")
    monkeypatch.setattr("time.sleep", lambda _: None)
    return script


def _calls(pip: Path) -> list[str]:
    return (pip.parent / "calls").read_text().splitlines()


def test_fetched_once(pip: Path, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    for _ in range(2):
        assert wheels.fetch_wheel(WHEEL, downloads, [str(pip)]).read_bytes() == b"wheel"
    assert len(_calls(pip)) == 1
    assert "--require-hashes" in _calls(pip)[0]
    assert [path.name for path in downloads.iterdir()] == [WHEEL.sha256]


def test_passing_faults_are_retried(pip: Path, tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("1\n2\n")
    wheels.fetch_wheel(WHEEL, tmp_path / "downloads", [str(pip)])
    assert len(_calls(pip)) == 3


def test_wrong_content_is_fatal(pip: Path, tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"evil")
    with pytest.raises(AirgapError, match=r"can't fetch thing==1\.0"):
        wheels.fetch_wheel(WHEEL, tmp_path / "downloads", [str(pip)])
    assert list((tmp_path / "downloads").iterdir()) == []


def test_error_shows_what_pip_said(pip: Path, tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("1\n" * 9)
    with pytest.raises(AirgapError, match="no such host"):
        wheels.fetch_wheel(WHEEL, tmp_path / "downloads", [str(pip)])


def test_another_pip_is_found(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [["/nonexistent/python", "-m", "pip"], ["false"], [str(pip)]]
    monkeypatch.setattr(wheels, "_candidates", lambda: iter(candidates))
    (pip.parent / "calls").touch()
    pip.write_text("#!/bin/sh\necho pip 23\n")
    assert wheels.find_pip() == [str(pip)]


def test_no_pip_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "_candidates", lambda: iter([["false"]]))
    with pytest.raises(AirgapError, match="install python3-pip"):
        wheels.find_pip()
