"""Makes the archive of a release: one file, whose bytes depend on the commit alone, and on the
compiled runtimes if there are any.

    python3 tools/release/archive.py v0.1.0                 # rules_aoti-v0.1.0.tar.gz, of that tag
    python3 tools/release/archive.py v0.1.0 --commit=HEAD   # the same of another commit: to try it
    python3 tools/release/archive.py v0.1.0 --runtime=x86_64=bazel-bin/runtime/prebuilt

With `--runtime`, the release brings the runtime compiled for a CPU, in an archive of its own.
Prints the release's notes: how to depend on it, the archive's integrity, and its section of
CHANGELOG.md. `.gitattributes` says what is left out of it.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from release.runtime import (  # noqa: E402
    ARCHIVES_BZL,
    RuntimeArchiveError,
    archives_bzl,
    read_libraries,
)

NAME = "rules_aoti"
_TAG = re.compile(r"v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)")
_MODULE_VERSION = re.compile(r'^module\((?:[^)]*?)\bversion = "([^"]+)"', re.MULTILINE)


class ReleaseError(Exception):
    """The commit can't be released; the message says why."""


@dataclass(frozen=True)
class Release:
    """A version's archive and notes."""

    version: str
    archive: bytes
    notes: str
    # By file name.
    runtimes: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        return f"{NAME}-v{self.version}.tar.gz"

    @property
    def prefix(self) -> str:
        """The folder in the archive, named as in the archives that GitHub itself makes."""
        return f"{NAME}-{self.version}"


def integrity(data: bytes) -> str:
    """As Bazel's registries write a SHA-256."""
    return "sha256-" + base64.b64encode(hashlib.sha256(data).digest()).decode()


def _git(repository: Path, *arguments: str) -> bytes:
    run = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)
    if run.returncode:
        raise ReleaseError(f"git {' '.join(arguments)}: {run.stderr.decode().strip()}")
    return run.stdout


def _files(repository: Path, commit: str) -> dict[str, tuple[bytes, bool]]:
    """What the commit's .gitattributes let through: content, and whether it is a program."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(_git(repository, "archive", commit))) as tar:
        for member in tar:
            if member.issym():
                raise ReleaseError(f"{member.name} is a symbolic link: an archive has files alone")
            content = tar.extractfile(member) if member.isfile() else None
            if content:
                files[member.name] = (content.read(), bool(member.mode & 0o100))
    return files


def pack(prefix: str, files: dict[str, tuple[bytes, bool]]) -> bytes:
    """A .tar.gz of files alone, in the order of their names: nothing of who made it, or when."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in sorted(files):
            content, executable = files[name]
            member = tarfile.TarInfo(f"{prefix}/{name}" if prefix else name)
            member.size = len(content)
            member.mode = 0o755 if executable else 0o644
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _changes(changelog: str, version: str) -> str:
    """The section of a version."""
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        if title.split()[:1] == [version]:
            if "unreleased" in title:
                raise ReleaseError(
                    f'CHANGELOG.md: the section of {version} is called "{title}"; expected the '
                    f'version and its date: write "## {version} (YYYY-MM-DD)"'
                )
            return text.strip()
    raise ReleaseError(f'CHANGELOG.md: no section "## {version}"; write what is new in it')


def _download_url(repository: Path, commit: str, version: str) -> str:
    """Where a release's files are. .bcr/ says who the owner is."""
    metadata = json.loads(_git(repository, "show", f"{commit}:.bcr/metadata.template.json"))
    place = metadata["repository"][0].removeprefix("github:")
    return f"https://github.com/{place}/releases/download/v{version}"


def pack_runtimes(
    runtimes: Mapping[str, Path], version: str, url: str
) -> tuple[dict[str, bytes], bytes]:
    """Makes an archive of each CPU's libraries.

    runtimes: CPU to the folder with its libraries. url: the folder that the archives will be in.
    Returns them by file name, and what ARCHIVES_BZL says of them.
    """
    packed = {}
    archives = {}
    for cpu, folder in sorted(runtimes.items()):
        name = f"{NAME}-v{version}-runtime-linux_{cpu}.tar.gz"
        packed[name] = pack("", read_libraries(cpu, folder))
        archives[cpu] = {"integrity": integrity(packed[name]), "url": f"{url}/{name}"}
    return packed, archives_bzl(archives).encode()


def _notes(version: str, archive: bytes, changes: str) -> str:
    digest = hashlib.sha256(archive).hexdigest()
    return f"""\
```starlark
# MODULE.bazel
bazel_dep(name = "{NAME}", version = "{version}")
```

The archive's integrity is `{integrity(archive)}` (SHA-256 `{digest}`). \
How to begin: README.md, "To use rules_aoti in a module of your own".

## What is new

{changes}
"""


def make_release(
    repository: Path,
    tag: str,
    commit: str,
    trial: bool = False,
    runtimes: Mapping[str, Path] | None = None,
) -> Release:
    """The release of a commit.

    trial: whether its changelog may still be called unreleased. runtimes: CPU to the folder with
    the runtime's libraries, as //runtime/prebuilt makes them.
    """
    found = _TAG.fullmatch(tag)
    if not found:
        raise ReleaseError(f'the tag is "{tag}"; expected v and a version, such as "v0.1.0"')
    version = found[1]
    module = _git(repository, "show", f"{commit}:MODULE.bazel").decode()
    declared = _MODULE_VERSION.search(module)
    if not declared or declared[1] != version:
        raise ReleaseError(
            f'MODULE.bazel of {commit}: version is "{declared[1] if declared else ""}", the tag is '
            f'"{tag}"; write version = "{version}" in module()'
        )
    changelog = _git(repository, "show", f"{commit}:CHANGELOG.md").decode()
    changes = _changes(changelog.replace("(unreleased)", "") if trial else changelog, version)
    files = _files(repository, commit)
    packed: dict[str, bytes] = {}
    if runtimes:
        url = _download_url(repository, commit, version)
        packed, archives = pack_runtimes(runtimes, version, url)
        files[ARCHIVES_BZL] = (archives, False)
    archive = pack(f"{NAME}-{version}", files)
    return Release(version, archive, _notes(version, archive, changes), packed)


def main() -> None:
    """Writes the archive, and prints the notes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tag")
    parser.add_argument("--commit", help="what to release; default: the tag")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the archive")
    parser.add_argument(
        "--runtime",
        action="append",
        default=[],
        metavar="CPU=FOLDER",
        help="bring the runtime compiled for a CPU: the folder has what //runtime/prebuilt makes",
    )
    args = parser.parse_args()
    runtimes = {}
    for text in args.runtime:
        cpu, _, folder = text.partition("=")
        runtimes[cpu] = Path(folder)
    try:
        release = make_release(
            ROOT,
            args.tag,
            args.commit or args.tag,
            trial=args.commit is not None,
            runtimes=runtimes,
        )
    except (ReleaseError, RuntimeArchiveError) as error:
        sys.exit(f"release: {error}")
    for name, data in {release.file_name: release.archive, **release.runtimes}.items():
        (args.out / name).write_bytes(data)
    print(release.notes, end="")


if __name__ == "__main__":
    main()
