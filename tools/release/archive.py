"""Makes the archive of a release: one file, whose bytes depend on the commit alone.

    python3 tools/release/archive.py v0.1.0                 # rules_aoti-v0.1.0.tar.gz, of that tag
    python3 tools/release/archive.py v0.1.0 --commit=HEAD   # the same of another commit: to try it

Prints the release's notes: how to depend on it, the archive's integrity, and its section of
CHANGELOG.md. `.gitattributes` says what is left out of it.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

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
            member = tarfile.TarInfo(f"{prefix}/{name}")
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


def make_release(repository: Path, tag: str, commit: str, trial: bool = False) -> Release:
    """The release of a commit. trial: whether its changelog may still be called unreleased."""
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
    archive = pack(f"{NAME}-{version}", _files(repository, commit))
    return Release(version, archive, _notes(version, archive, changes))


def main() -> None:
    """Writes the archive, and prints the notes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tag")
    parser.add_argument("--commit", help="what to release; default: the tag")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the archive")
    args = parser.parse_args()
    repository = Path(__file__).resolve().parents[2]
    try:
        release = make_release(
            repository, args.tag, args.commit or args.tag, trial=args.commit is not None
        )
    except ReleaseError as error:
        sys.exit(f"release: {error}")
    (args.out / release.file_name).write_bytes(release.archive)
    print(release.notes, end="")


if __name__ == "__main__":
    main()
