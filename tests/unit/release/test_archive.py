"""The archive of a release: the same bytes from whoever makes it, with all that a user loads."""

from __future__ import annotations

import ast
import gzip
import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from release.archive import Release, ReleaseError, integrity, make_release

from tests.unit.release import tree

MODULE = (tree.workspace() / "MODULE.bazel").read_text(encoding="utf-8")
VERSION = re.findall(r'\bversion = "([^"]+)"', MODULE)[0]
TAG = f"v{VERSION}"
# The test module of the Central Registry, which is a module of its own.
SMOKE = "tests/e2e/smoke/"
# What users read, and folders that BUILD files of theirs name.
PLACES = {
    ".bazelignore",
    ".bazelrc",
    ".bazelversion",
    "BUILD.bazel",
    "CHANGELOG.md",
    "LICENSE",
    "MODULE.bazel",
    "README.md",
    "docs",
    "rules",
    "runtime",
    "tests",
    "toolchain",
    "tools",
}

Edit = Callable[[str, str, str], None]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tree.copy(tmp_path_factory.mktemp("source") / "rules_aoti")
    tree.commit(folder)
    return folder


@pytest.fixture(scope="module")
def release(source: Path) -> Release:
    return make_release(source, TAG, "HEAD")


def unzipped(release: Release) -> dict[str, bytes]:
    """The files by their paths below the archive's folder."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(release.archive)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            assert content, f"{member.name} is not a file"
            folder, _, name = member.name.partition("/")
            assert folder == f"rules_aoti-{VERSION}"
            files[name] = content.read()
    return files


@pytest.fixture(scope="module")
def files(release: Release) -> dict[str, bytes]:
    return unzipped(release)


def test_same_bytes(source: Path, release: Release, tmp_path: Path) -> None:
    """Another user makes it, in another folder, later, from another history."""
    other = tmp_path / "another folder"
    shutil.copytree(source, other, ignore=shutil.ignore_patterns(".git"))
    for path in other.rglob("*"):
        if path.is_file():
            path.chmod(path.stat().st_mode & 0o700)
    (other / "README.md").touch()
    tree.commit(other, date="2040-01-01T00:00:00Z")
    assert make_release(other, TAG, "HEAD").archive == release.archive


def test_nothing_of_who_made_it(release: Release) -> None:
    assert release.archive[3:10] == bytes([0, 0, 0, 0, 0, 2, 255]), "gzip: name, time or system"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(release.archive))) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == sorted(m.name for m in members)
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    assert {m.mode for m in members} <= {0o644, 0o755}


def test_what_is_not_for_users_is_left_out(files: dict[str, bytes]) -> None:
    assert {name.partition("/")[0] for name in files} == PLACES
    others = [n for n in files if re.search(r"(^|/)(tests|benchmarks)/", n) and SMOKE not in n]
    assert others == []
    assert sum(map(len, files.values())) < 4 << 20


def test_the_test_module_is_whole(source: Path, files: dict[str, bytes]) -> None:
    tracked = tree.git(source, "ls-files", SMOKE).split()
    assert tracked and set(tracked) <= files.keys()


def labels(name: str, text: str) -> Iterator[tuple[int, str]]:
    """The labels of this repository that a BUILD or .bzl file names, but for who may see what."""
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.removeprefix("@rules_aoti")
            about_visibility = text.startswith("//visibility:") or text.endswith("__")
            if re.fullmatch(r"//[\w./-]*(:[\w./+-]+)?", text) and not about_visibility:
                yield node.lineno, text


def test_all_labels_lead_into_the_archive(files: dict[str, bytes]) -> None:
    packages = {name.rpartition("/")[0] for name in files if name.endswith("BUILD.bazel")}
    missing = []
    seen = 0
    for name, content in files.items():
        if not name.endswith((".bzl", "BUILD.bazel")) or name.startswith(SMOKE):
            continue
        for line, label in labels(name, content.decode()):
            package, _, target = label[2:].partition(":")
            seen += 1
            of_file = target.endswith((".bzl", ".py", ".txt", ".cc", ".h"))
            if package not in packages or (of_file and f"{package}/{target}" not in files):
                missing.append(f"{name}:{line}: {label}")
    assert seen > 50
    assert missing == []


def test_all_sources_are_in_the_archive(source: Path, files: dict[str, bytes]) -> None:
    """globs would not miss a file."""
    left_out = re.compile(r"(runtime/(cuda/|slim/)?|tools/ptx_emulator/)tests/")
    for folder in ("rules", "runtime", "toolchain", "tools/ptx_emulator"):
        tracked = tree.git(source, "ls-files", folder).split()
        assert {name for name in tracked if not left_out.match(name)} <= files.keys()


def test_module_of_users_has_no_development_dependency_outside(files: dict[str, bytes]) -> None:
    """Bazel reads no file of an extension that is for development, but of all others."""
    for call in re.findall(r"use_extension\([^)]*\)", files["MODULE.bazel"].decode()):
        package, target = re.findall(r'"//([\w/]+):([\w.]+)"', call)[0]
        assert "dev_dependency = True" in call or f"{package}/{target}" in files, call


def test_notes(release: Release) -> None:
    assert f'bazel_dep(name = "rules_aoti", version = "{VERSION}")' in release.notes
    assert integrity(release.archive) in release.notes
    assert "## What is new\n\n" in release.notes


def test_the_workflow_makes_it(source: Path, release: Release) -> None:
    tree.git(source, "tag", "--force", TAG)
    command = [str(source / ".github" / "workflows" / "release_prep.sh"), TAG]
    run = subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    assert run.stdout == release.notes
    made = source / f"rules_aoti-{TAG}.tar.gz"
    assert made.read_bytes() == release.archive
    made.unlink()


@pytest.fixture
def edit(source: Path, tmp_path: Path) -> Iterator[tuple[Path, Edit]]:
    """A clone, and what replaces text in one of its files and commits that."""
    clone = tmp_path / "clone"
    tree.git(tmp_path, "clone", "--quiet", str(source), str(clone))

    def replace(file: str, old: str, new: str) -> None:
        path = clone / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        tree.commit(clone)

    yield clone, replace


def test_tag_of_another_version(source: Path) -> None:
    with pytest.raises(ReleaseError, match=r'version is ".*", the tag is "v9.9.9"; write version'):
        make_release(source, "v9.9.9", "HEAD")


def test_tag_that_is_no_version(source: Path) -> None:
    with pytest.raises(ReleaseError, match='the tag is "newest"; expected v and a version'):
        make_release(source, "newest", "HEAD")


def test_unreleased_changelog(edit: tuple[Path, Edit]) -> None:
    clone, replace = edit
    replace("CHANGELOG.md", f"{VERSION} (2026-01-02)", f"{VERSION} (unreleased)")
    with pytest.raises(ReleaseError, match=r'is called ".* \(unreleased\)"; expected'):
        make_release(clone, TAG, "HEAD")
    assert make_release(clone, TAG, "HEAD", trial=True).version == VERSION


def test_no_section_in_the_changelog(edit: tuple[Path, Edit]) -> None:
    clone, replace = edit
    replace("CHANGELOG.md", f"## {VERSION}", "## 0.0.0")
    with pytest.raises(ReleaseError, match=f'no section "## {VERSION}"; write what is new in it'):
        make_release(clone, TAG, "HEAD")


def test_symbolic_link(edit: tuple[Path, Edit]) -> None:
    clone, _ = edit
    (clone / "rules" / "link.bzl").symlink_to("defs.bzl")
    tree.commit(clone)
    with pytest.raises(ReleaseError, match=r"rules/link.bzl is a symbolic link"):
        make_release(clone, TAG, "HEAD")
