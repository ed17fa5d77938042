"""bazelw as a command: its choice, its messages, and that Bazel's output is unchanged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("BAZELW_ROOT", ".")).absolute()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with bazelw in it, and a nested one."""
    workspace = tmp_path / "work space"
    shutil.copytree(ROOT / "tools/airgap", workspace / "tools/airgap")
    for name in ("bazelw", "MODULE.bazel", ".bazelversion"):
        shutil.copy(ROOT / name, workspace / name)
    nested = workspace / "tests/e2e/nested"
    nested.mkdir(parents=True)
    (nested / "MODULE.bazel").write_text('bazel_dep(name = "bazel_features", version = "9.9")\n')
    return workspace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder that is all of PATH, with python3 in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    return folder


def program(path: Path, name: str, version: str = "bazel 8.1.0") -> Path:
    """An imitation of Bazel, which prints its arguments."""
    file = path / name
    file.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\n'
        'printf "%s|" "$0" "$USE_BAZEL_VERSION" "$@"\necho to stderr >&2\nexit 3\n'
    )
    file.chmod(0o755)
    return file


def bazelw(
    root: Path, path: Path, *words: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), "HOME": str(path.parent), "BAZELW": "", **variables}
    return subprocess.run(
        [sys.executable, str(root / "bazelw"), *words],
        cwd=cwd or root,
        env={key: value for key, value in environment.items() if value != "unset"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def silent(path: Path) -> None:
    """Lets bazelw believe that it found Bazel's servers silent a moment ago."""
    import time

    cache = path.parent / ".cache/rules_aoti"
    cache.mkdir(parents=True)
    probe = {"time": time.time(), "silent": "https://server"}
    (cache / "probe.json").write_text(json.dumps(probe))


def test_bazel_variable_comes_first(root: Path, path: Path) -> None:
    program(path, "bazel")
    mine = program(path, "mine")
    run = bazelw(root, path, "build", "//a b", BAZEL=str(mine))
    assert run.stdout == f"{mine}||build|//a b|"
    assert run.returncode == 3
    assert run.stderr == f"bazelw: {mine}, named by BAZEL\nto stderr\n"


def test_bazel_variable_may_be_a_command(root: Path, path: Path) -> None:
    mine = program(path, "mine")
    assert bazelw(root, path, BAZEL="mine").stdout == f"{mine}||"


def test_bazel_variable_that_names_nothing(root: Path, path: Path) -> None:
    run = bazelw(root, path, BAZEL="nothing")
    assert run.returncode == 1
    assert run.stderr == "bazelw: BAZEL names 'nothing', which is not a command\n"


def test_bazel_variable_that_names_bazelw(root: Path, path: Path) -> None:
    assert "bazelw itself" in bazelw(root, path, BAZEL=str(root / "bazelw")).stderr


def test_bazelisk_is_preferred_to_bazel(root: Path, path: Path) -> None:
    program(path, "bazel")
    bazelisk = program(path, "bazelisk")
    run = bazelw(root, path, "info")
    assert run.stdout == f"{bazelisk}||info|"
    assert f"{bazelisk}, Bazel 8.1.0, is on PATH" in run.stderr


def test_nested_workspace_gets_our_version(root: Path, path: Path) -> None:
    bazelisk = program(path, "bazelisk")
    run = bazelw(root, path, "info", cwd=root / "tests/e2e/nested")
    version = (root / ".bazelversion").read_text().strip()
    assert run.stdout == f"{bazelisk}|{version}|info|"


def test_bazelw_on_path_is_not_taken(root: Path, path: Path) -> None:
    (path / "bazel").symlink_to(root / "bazelw")
    silent(path)
    assert "chosen:     airgap (no bazelisk" in bazelw(root, path, "--explain").stdout


@pytest.mark.parametrize(
    "version, reason",
    [("bazel 6.5.0", "is 6.5.0, too old"), ("bazel 7.3.2", "is 7.3.2, too old")],
)
def test_old_bazel_is_not_taken(root: Path, path: Path, version: str, reason: str) -> None:
    program(path, "bazel", version)
    assert reason in bazelw(root, path, "--explain").stdout


@pytest.mark.parametrize("version", ["bazel 7.4.0", "bazel 7.7.1- (@non-git)", "bazel 10.0.0rc1"])
def test_newer_bazel_is_taken(root: Path, path: Path, version: str) -> None:
    bazel = program(path, "bazel", version)
    assert bazelw(root, path, "x").stdout == f"{bazel}||x|"


def test_broken_bazelisk_is_passed_over(root: Path, path: Path) -> None:
    broken = path / "bazelisk"
    broken.write_text("#!/bin/sh\necho could not download Bazel >&2\nexit 1\n")
    broken.chmod(0o755)
    bazel = program(path, "bazel")
    assert bazelw(root, path, "x").stdout == f"{bazel}||x|"
    bazel.unlink()
    assert "(could not download Bazel)" in bazelw(root, path, "--explain").stdout


def test_silent_servers_lead_to_airgap(root: Path, path: Path) -> None:
    program(path, "npm")
    silent(path)
    run = bazelw(root, path, BAZELW="npm")
    assert run.returncode == 1
    assert run.stderr == "bazelw: BAZELW=npm; https://server does not answer\n"


def test_wrong_choice_names_the_right_ones(root: Path, path: Path) -> None:
    assert "must be path, npm or airgap" in bazelw(root, path, BAZELW="pip").stderr


def test_explain_tells_all(root: Path, path: Path) -> None:
    nested = root / "tests/e2e/nested"
    run = bazelw(root, path, "--explain", cwd=nested)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert f"workspaces: {root}, {nested}" in run.stdout
    assert "bazel_features 9.9" in run.stdout
    assert "rules_cc" in run.stdout
    assert f"cache:      {path.parent}/.cache/rules_aoti" in run.stdout


@pytest.mark.parametrize("home", ["unset", "", "/nonexistent", "relative"])
def test_without_home(root: Path, path: Path, tmp_path: Path, home: str) -> None:
    (tmp_path / "tmp").mkdir()
    run = bazelw(root, path, "--explain", HOME=home, TMPDIR=str(tmp_path / "tmp"))
    folder = tmp_path / f"tmp/rules_aoti-{os.getuid()}"
    assert f"home:       {folder} (HOME was not usable)" in run.stdout, run.stderr
    assert folder.stat().st_mode & 0o777 == 0o700


def test_foreign_link_is_no_home(root: Path, path: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / f"tmp/rules_aoti-{os.getuid()}").symlink_to(tmp_path)
    run = bazelw(root, path, "--explain", HOME="unset", TMPDIR=str(tmp_path / "tmp"))
    assert "set HOME" in run.stderr
    assert run.returncode == 1


def test_cache_directory_can_be_chosen(root: Path, path: Path, tmp_path: Path) -> None:
    run = bazelw(root, path, "--explain", XDG_CACHE_HOME=str(tmp_path / "x"))
    assert f"cache:      {tmp_path}/x/rules_aoti" in run.stdout


def test_lock_file_of_another_bazel_is_refused(root: Path, path: Path) -> None:
    (root / "MODULE.bazel.lock").write_text('{"lockFileVersion": 13}')
    run = bazelw(root, path, "build", BAZELW="airgap")
    assert run.returncode == 1
    assert "MODULE.bazel.lock was written by another build of Bazel 7: remove it" in run.stderr


def test_nothing_is_written_to_the_workspace(root: Path, path: Path) -> None:
    program(path, "bazel")
    before = sorted(root.rglob("*"))
    bazelw(root, path, "info")
    assert sorted(root.rglob("*")) == before
