"""Compares what models are built into with what another revision builds them into.

usage: python3 tools/compare_artifacts.py [--groups=LIST] [--folder=DIR] REVISION [TARGET ...]
           [-- BAZEL_OPTION ...]

Builds the targets (//models/... by default) twice, with all output groups: as the working tree has
them, and as REVISION has them, in a git worktree beside this one. A change of the driver, the rules
or the runtime that is meant to change nothing is shown to do so by this:

    same             the same bytes
    but provenance   the same bytes but for digests of what the artifact was made of, such as the
                     driver's, and the linker's build ids, which follow from these
    different, missing, new

The exit status is 1 if a file is different, missing or new. Bazel is the command that BAZEL names,
or each tree's own bazelw.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("//models/...",)
GROUPS = "default,cpp,export,manifest,package,provenance,python,report,sbom,weights"

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
# An ELF note: the sizes of name and description, the type 3, the name, 20 bytes of SHA-1.
_BUILD_ID = re.compile(rb"(\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0).{20}", re.DOTALL)


def without_provenance(content: bytes) -> bytes:
    """A file's content with zeros in place of digests and build ids; for a zip, its members'."""
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        return b"".join(
            name.encode() + b"\0" + without_provenance(member) for name, member in members
        )
    content = _DIGEST.sub(b"0" * 64, content)
    return _BUILD_ID.sub(lambda match: match[1] + bytes(20), content)


def verdict(before: bytes | None, after: bytes | None) -> str:
    """How two versions of a file compare; None for one that is not there."""
    if before is None:
        return "new"
    if after is None:
        return "missing"
    if before == after:
        return "same"
    if without_provenance(before) == without_provenance(after):
        return "but provenance"
    return "different"


def outputs(events: Path) -> dict[str, Path]:
    """The files of all output groups that a build made, by their paths below the folder of outputs.

    events: what --build_event_json_file wrote.
    """
    found: dict[str, Path] = {}
    for line in events.read_text(encoding="utf-8").splitlines():
        for file in json.loads(line).get("namedSetOfFiles", {}).get("files", ()):
            path = Path(urllib.parse.unquote(urllib.parse.urlsplit(file["uri"]).path))
            for inner in _files(path):
                below = inner.relative_to(path).as_posix()
                found[file["name"] if below == "." else f"{file['name']}/{below}"] = inner
    return found


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from (inner for inner in sorted(path.rglob("*")) if inner.is_file())


def build(
    tree: Path, targets: Sequence[str], groups: str, options: Sequence[str], events: Path
) -> dict[str, Path]:
    """Builds the targets in a source tree; returns their files.

    events: where Bazel writes what it has built.
    """
    bazel = os.environ.get("BAZEL", str(tree / "bazelw"))
    command = [bazel, "build", f"--output_groups={groups}", "--remote_download_outputs=all"]
    command += [f"--build_event_json_file={events}", *options, "--", *targets]
    print(f"{tree}: {' '.join(command)}", file=sys.stderr, flush=True)
    if subprocess.run(command, cwd=tree, check=False).returncode:
        sys.exit(f"{tree}: the build failed, so nothing can be compared")
    return outputs(events)


def compare(before: Mapping[str, Path], after: Mapping[str, Path]) -> dict[str, list[str]]:
    """The names of all files by their verdicts."""
    verdicts: dict[str, list[str]] = {}
    for name in sorted(before.keys() | after.keys()):
        contents = [
            side[name].read_bytes() if name in side and side[name].is_file() else None
            for side in (before, after)
        ]
        verdicts.setdefault(verdict(*contents), []).append(name)
    return verdicts


def main() -> None:
    """Builds both, prints the verdicts, and fails if more than provenance differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", default=GROUPS, metavar="LIST")
    parser.add_argument("--folder", type=Path, help="for the worktree; kept. Not below /tmp.")
    parser.add_argument("revision", metavar="REVISION")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    own = sys.argv[1:]
    cut = own.index("--") if "--" in own else len(own)
    args, options = parser.parse_args(own[:cut]), own[cut + 1 :]
    targets = args.targets or TARGETS

    # Bazel's sandbox has a /tmp of its own: what lies there does not build.
    place = args.folder or Path(tempfile.mkdtemp(prefix="compare_artifacts.", dir=ROOT.parent))
    tree = place / "tree"
    if not tree.exists():
        command = ["git", "worktree", "add", "--detach", str(tree), args.revision]
        subprocess.run(command, cwd=ROOT, check=True)
    try:
        before = build(tree, targets, args.groups, options, place / "before.json")
        after = build(ROOT, targets, args.groups, options, place / "after.json")
        verdicts = compare(before, after)
    finally:
        if not args.folder:
            bazel = os.environ.get("BAZEL", str(tree / "bazelw"))
            subprocess.run([bazel, "clean", "--expunge"], cwd=tree, check=False)
            remove = ["git", "worktree", "remove", "--force", str(tree)]
            subprocess.run(remove, cwd=ROOT, check=False)
            shutil.rmtree(place, ignore_errors=True)
    for kind, names in sorted(verdicts.items()):
        print(f"{kind}: {len(names)}")
        if kind != "same":
            print("".join(f"  {name}\n" for name in names), end="")
    sys.exit(bool(verdicts.keys() - {"same", "but provenance"}))


if __name__ == "__main__":
    main()
