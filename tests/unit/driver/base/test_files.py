from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from aoti_driver.base import files, interruption
from aoti_driver.process import cli


def test_all_outputs_appear_together(tmp_path: Path) -> None:
    targets = [tmp_path / "sub" / name for name in ("a", "b")]
    with files.outputs(*map(str, targets)) as partial:
        for path in partial:
            path.write_text(path.name, encoding="utf-8")
        assert not any(t.exists() for t in targets)
    assert sorted(p.name for p in (tmp_path / "sub").iterdir()) == ["a", "b"]


@pytest.mark.parametrize("written", [0, 1, 2])
def test_nothing_is_left_after_a_failure(tmp_path: Path, written: int) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        files.outputs(str(tmp_path / "a"), str(tmp_path / "b")) as partial,
    ):
        for path in partial[:written]:
            path.write_text("half", encoding="utf-8")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_was_forgotten_is_a_failure(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError),
        files.outputs(str(tmp_path / "a"), str(tmp_path / "b")) as partial,
    ):
        partial[0].write_text("alone", encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("made", [False, True])
def test_a_folder_is_an_output_like_a_file(tmp_path: Path, made: bool) -> None:
    target = tmp_path / "a"
    if made:  # as Bazel does
        target.mkdir()
    with files.outputs(str(target)) as (partial,):
        partial.mkdir()
        (partial / "x").write_text("", encoding="utf-8")
        assert not list(target.glob("*"))
    assert [p.name for p in tmp_path.rglob("*")] == ["a", "x"]


def test_no_folder_is_left_after_a_failure(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        files.outputs(str(tmp_path / "a"), str(tmp_path / "b")) as partial,
    ):
        partial[0].mkdir()
        (partial[0] / "x").write_text("half", encoding="utf-8")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_scratch_directory_is_removed() -> None:
    with files.scratch_directory() as scratch:
        (scratch / "x").write_text("", encoding="utf-8")
    assert not scratch.exists()


@pytest.mark.parametrize("moment", ["mkdtemp", "rmtree"])
def test_the_scratch_directory_of_a_process_that_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str
) -> None:
    """SIGTERM that comes while the directory is made, or removed, leaves nothing."""
    module = {"mkdtemp": tempfile, "rmtree": shutil}[moment]
    function = getattr(module, moment)

    def interrupted(*args: object, **kwargs: object) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return function(*args, **kwargs)

    before = signal.getsignal(signal.SIGTERM)
    interruption.exit_on_sigterm()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(tmp_path))
            patch.setattr(module, moment, interrupted)
            with pytest.raises(SystemExit, match="143"), files.scratch_directory():
                pass
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the quota of this user's disk space is used up"),
        (errno.EFBIG, "the file is larger than the file system or the limit (ulimit -f) allows"),
    ],
)
def test_no_room_is_no_bug_of_the_driver(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    text: str,
) -> None:
    def full(_command: str, _arguments: object) -> None:
        with files.outputs(str(tmp_path / "out")):
            raise RuntimeError("writing failed") from OSError(number, "no room")

    monkeypatch.setattr(cli, "_run", full)
    assert cli.main(["report"]) == 1
    assert capsys.readouterr().err == f"a file cannot be written or read: {text}\n"
    assert list(tmp_path.iterdir()) == []
