"""What a new user starts with: the pages' snippets, and an archive of the source in a registry."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import platform
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from release.archive import pack_runtimes
from release.runtime import ARCHIVES_BZL

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"^(?:#|//) (?P<path>[\w./]+\.\w+)\n")
_VERSION = re.compile(r'^module\(.*?version = "(?P<version>[^"]+)"', re.MULTILINE | re.DOTALL)

# What a checkout may have beside the files under version control.
_NOT_SOURCE = re.compile(
    r"^(\.git|\.hypothesis|__pycache__|\..*_cache|bazel-.*|user\.bazelrc|MODULE\.bazel\.lock)$"
)


@dataclass(frozen=True)
class Snippet:
    """A block of code in a page: its language, and its text without the fences."""

    language: str
    text: str

    @property
    def path(self) -> str | None:
        """The file that the snippet is, if its first line names one in a comment."""
        match = _FILE.match(self.text)
        return match["path"] if match else None


def snippets(page: str) -> list[Snippet]:
    """The blocks of code of a page in Markdown."""
    return [
        Snippet(
            match["language"], re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        )
        for match in _FENCE.finditer(page)
    ]


def files(page: str) -> dict[str, str]:
    """The files that a page shows whole, as they stand there."""
    return {snippet.path: snippet.text for snippet in snippets(page) if snippet.path}


def commands(page: str, program: str = "bazel") -> list[list[str]]:
    """The commands of a page's shell snippets that run `program`, as words without it."""
    lines = [
        line.partition(" #")[0].split()
        for snippet in snippets(page)
        if snippet.language == "sh"
        for line in snippet.text.splitlines()
    ]
    return [words[1:] for words in lines if words[:1] == [program]]


def source_files(root: Path) -> Iterator[Path]:
    """The files of a checkout that belong to the source."""
    for path in sorted(root.iterdir()):
        if _NOT_SOURCE.match(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from source_files(path)
        else:
            yield path


def archive(root: Path, prefix: str, written: Mapping[str, bytes]) -> bytes:
    """A checkout as `git archive --prefix=<prefix>/` packs it, reproducibly.

    written: files by their paths that are others in a release.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in source_files(root):
            name = path.relative_to(root).as_posix()
            info = tarfile.TarInfo(f"{prefix}/{name}")
            if path.is_symlink():
                info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(info)
                continue
            data = written.get(name) or path.read_bytes()
            info.size = len(data)
            info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def publish(root: Path, place: Path, runtime: Path) -> str:
    """Makes a registry in the folder `place` that serves an archive of a checkout.

    runtime: the folder with the compiled runtime, which the archive brings as a release does.
    Returns the registry's URL.
    """
    module = (root / "MODULE.bazel").read_text(encoding="utf-8")
    match = _VERSION.search(module)
    assert match, "MODULE.bazel names no version"
    prefix = f"{root_name(module)}-{match['version']}"
    runtimes = {platform.machine(): runtime}
    packed, archives = pack_runtimes(runtimes, match["version"], place.as_uri())
    data = archive(root, prefix, {ARCHIVES_BZL: archives})
    entry = place / "modules" / root_name(module) / match["version"]
    entry.mkdir(parents=True, exist_ok=True)
    for file, content in {f"{prefix}.tar": data, **packed}.items():
        (place / file).write_bytes(content)
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    source = {
        "integrity": f"sha256-{digest}",
        "strip_prefix": prefix,
        "url": (place / f"{prefix}.tar").as_uri(),
    }
    listing = {"versions": [match["version"]], "yanked_versions": {}}
    (entry / "MODULE.bazel").write_text(module, encoding="utf-8")
    (entry / "source.json").write_text(json.dumps(source, indent=2) + "\n", encoding="utf-8")
    (entry.parent / "metadata.json").write_text(json.dumps(listing) + "\n", encoding="utf-8")
    (place / "bazel_registry.json").write_text("{}\n", encoding="utf-8")
    return place.as_uri()


def root_name(module: str) -> str:
    """The name in a MODULE.bazel's module()."""
    match = re.search(r'^module\(\s*name = "([^"]+)"', module, re.MULTILINE)
    assert match, "MODULE.bazel names no module"
    return match[1]
