"""The archive of a release: the same bytes from whoever makes it, with all that a user loads."""

from __future__ import annotations

import ast
import gzip
import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from release.archive import Release, ReleaseError, integrity, make_release
from release.runtime import ARCHIVES_BZL, CPUS, LIBRARIES, RuntimeArchiveError

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
    """The labels of places in this repository that a BUILD or .bzl file names."""
    for node in ast.walk(ast.parse(text, name)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.removeprefix("@rules_aoti")
            not_a_place = text.startswith(("//visibility:", "//conditions:")) or text.endswith("__")
            if re.fullmatch(r"//[\w./-]*(:[\w./+-]+)?", text) and not not_a_place:
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


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A folder such as //runtime/prebuilt leaves."""
    folder = tmp_path / "prebuilt"
    folder.mkdir()
    for name in (*LIBRARIES, "libslim.pic.a-2.params"):
        (folder / name).write_bytes(b"!<arch>\n" + name.encode())
    return folder


# In place of bazelw: leaves what a folder has where Bazel would.
BAZELW = """\
#!/bin/sh
case "$*" in
  "build --compilation_mode=opt --repo_env=CC=gcc-12 //runtime/prebuilt") from={x86_64} ;;
  "build --compilation_mode=opt --platforms=//toolchain/platforms:linux_aarch64 "\
"--extra_toolchains=//tools/cross_cc:gcc_12_linux_aarch64 //runtime/prebuilt") from={aarch64} ;;
  *) exit 1 ;;
esac
echo "INFO: what Bazel says is none of the notes"
rm -rf bazel-bin && mkdir -p bazel-bin/runtime && cp -r $from bazel-bin/runtime/prebuilt
"""

# In place of sudo, which would install the compiler for AArch64.
SUDO = """\
#!/bin/sh
test "$1" = apt-get && echo "Reading package lists..."
"""


def test_the_workflow_makes_it(
    source: Path, compiled: Path, compiled_elsewhere: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    tree.git(tmp_path, "clone", "--quiet", str(source), str(clone))
    tree.git(clone, "tag", "--force", TAG)
    bazelw = BAZELW.format(x86_64=compiled, aarch64=compiled_elsewhere)
    (clone / "bazelw").write_text(bazelw, encoding="utf-8")
    sudo = tmp_path / "bin" / "sudo"
    sudo.parent.mkdir()
    sudo.write_text(SUDO, encoding="utf-8")
    sudo.chmod(0o755)
    command = [str(clone / ".github" / "workflows" / "release_prep.sh"), TAG]
    environment = {**os.environ, "PATH": f"{sudo.parent}:{os.environ['PATH']}"}
    run = subprocess.run(
        command, cwd=clone, check=True, capture_output=True, text=True, env=environment
    )
    runtimes = {"x86_64": compiled, "aarch64": compiled_elsewhere}
    expected = make_release(source, TAG, "HEAD", runtimes=runtimes)
    assert run.stdout == expected.notes
    archives = {expected.file_name: expected.archive, **expected.runtimes}
    assert len(archives) == 3
    assert {path.name: path.read_bytes() for path in clone.glob("rules_aoti-*.tar.gz")} == archives


def test_without_compiled_runtimes(source: Path, release: Release, files: dict[str, bytes]) -> None:
    assert release.runtimes == {}
    assert files[ARCHIVES_BZL] == (source / ARCHIVES_BZL).read_bytes()
    assert b"\nARCHIVES = {}\n" in files[ARCHIVES_BZL]


@pytest.fixture
def compiled_elsewhere(compiled: Path, tmp_path: Path) -> Path:
    """The same for another CPU."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(compiled, folder)
    (folder / LIBRARIES[0]).write_bytes(b"of another CPU")
    return folder


def test_compiled_runtimes(
    source: Path, files: dict[str, bytes], compiled: Path, compiled_elsewhere: Path
) -> None:
    runtimes = {"x86_64": compiled, "aarch64": compiled_elsewhere}
    made = make_release(source, TAG, "HEAD", runtimes=runtimes)
    names = {cpu: f"rules_aoti-{TAG}-runtime-linux_{cpu}.tar.gz" for cpu in CPUS}
    assert sorted(made.runtimes) == sorted(names.values())

    # Nothing else of the release is another one, and what it says of the archives is true.
    now = unzipped(made)
    assert {name for name in now if now[name] != files.get(name)} == {ARCHIVES_BZL}
    said: dict[str, object] = {}
    exec(now[ARCHIVES_BZL].decode(), said)
    url = f"https://github.com/rules-aoti/rules_aoti/releases/download/{TAG}"
    assert said["ARCHIVES"] == {
        cpu: {"integrity": integrity(made.runtimes[name]), "url": f"{url}/{name}"}
        for cpu, name in names.items()
    }

    with tarfile.open(fileobj=io.BytesIO(made.runtimes[names["x86_64"]])) as tar:
        assert tar.getnames() == list(LIBRARIES)
        content = tar.extractfile(LIBRARIES[0])
        assert content and content.read() == (compiled / LIBRARIES[0]).read_bytes()

    again = make_release(source, TAG, "HEAD", runtimes=dict(reversed(runtimes.items())))
    assert again == made


def test_compiled_runtime_of_an_unknown_cpu(source: Path, compiled: Path) -> None:
    with pytest.raises(RuntimeArchiveError, match='the CPU is "arm64"; expected aarch64 or x86_64'):
        make_release(source, TAG, "HEAD", runtimes={"arm64": compiled})


def test_compiled_runtime_that_is_not_whole(source: Path, compiled: Path) -> None:
    (compiled / LIBRARIES[1]).unlink()
    with pytest.raises(RuntimeArchiveError, match=f"no {LIBRARIES[1]} in it; make it with "):
        make_release(source, TAG, "HEAD", runtimes={"x86_64": compiled})


@pytest.mark.parametrize("name", ["__isoc23_strtol", "_ZSt21ios_base_library_initv"])
def test_runtime_compiled_for_newer_systems_alone(source: Path, compiled: Path, name: str) -> None:
    (compiled / LIBRARIES[0]).write_bytes(b"!<arch>\n" + name.encode() + b"\0")
    with pytest.raises(RuntimeArchiveError, match=f"calls {name}, which .* GCC 12"):
        make_release(source, TAG, "HEAD", runtimes={"x86_64": compiled})


def test_the_cpus_are_those_that_the_rules_know(files: dict[str, bytes]) -> None:
    known: dict[str, object] = {}
    exec(files["runtime/prebuilt/cpus.bzl"].decode(), known)
    assert known["CPUS"] == list(CPUS)


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
