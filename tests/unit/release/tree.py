"""The source tree as a git repository of one commit: as it is now, committed or not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def workspace() -> Path:
    """The source tree: under Bazel, MODULE.bazel's runfile is a link into it."""
    runfiles = os.environ.get("TEST_SRCDIR")
    if not runfiles:
        return Path(__file__).resolve().parents[3]
    file = Path(runfiles, os.environ["TEST_WORKSPACE"], "MODULE.bazel")
    return file.resolve(strict=True).parent


def git(folder: Path, *arguments: str, **variables: str) -> str:
    who = {
        f"GIT_{role}_{key}": "x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", **who, **variables}
    run = subprocess.run(
        ["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return run.stdout


def commit(folder: Path, date: str = "2026-01-02T03:04:05Z") -> None:
    """Commits everything that git doesn't ignore."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    git(folder, "commit", "--quiet", "--message=All", **dates)


def copy(place: Path) -> Path:
    """A copy that the changelog has a dated section in, not yet committed."""
    ignored = shutil.ignore_patterns("bazel-*", ".git", "__pycache__", ".*_cache", "user.bazelrc")
    shutil.copytree(workspace(), place, ignore=ignored, symlinks=True)
    changelog = place / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(text.replace("(unreleased)", "(2026-01-02)"), encoding="utf-8")
    return place
