"""Does here what the Bazel Central Registry's presubmit does with a release, before there is one.

    python3 tools/release/presubmit.py                    # of HEAD, in a temporary folder
    python3 tools/release/presubmit.py --place=/some/folder --keep
    python3 tools/release/presubmit.py --analyze          # builds nothing: quick

Makes the archive of a commit, unpacks it, and runs the tasks of `.bcr/presubmit.yml` in its test
module: once as it is in the archive, once with rules_aoti from a registry of one entry, which is
made of `.bcr/`. Runs the Bazel that `bazelw` finds, whichever version that is. The place must not
be below /tmp, where Bazel's sandbox has a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from release.archive import NAME, Release, integrity, make_release  # noqa: E402

CENTRAL_REGISTRY = "https://bcr.bazel.build"
_OVERRIDE = re.compile(r"^local_path_override\(\n(?:    .*\n)*?\)\n", re.MULTILINE)
_DEPENDENCY = f'bazel_dep(name = "{NAME}")'


@dataclass(frozen=True)
class Task:
    """What presubmit.yml asks for, on each platform and with each Bazel."""

    name: str
    build_flags: list[str]
    build_targets: list[str]
    test_flags: list[str]
    test_targets: list[str]

    def commands(self) -> Iterator[list[str]]:
        """Bazel's commands, in the order in which the registry runs them."""
        if self.build_targets:
            yield ["build", *self.build_flags, "--", *self.build_targets]
        if self.test_targets:
            yield ["test", *self.test_flags, "--", *self.test_targets]


def read_presubmit(text: str) -> tuple[str, list[Task]]:
    """The folder of the test module, and its tasks."""
    module: dict[str, Any] = yaml.safe_load(text)["bcr_test_module"]
    tasks = [
        Task(
            name=task["name"],
            **{
                key: list(task.get(key, []))
                for key in ("build_flags", "build_targets", "test_flags", "test_targets")
            },
        )
        for task in module["tasks"].values()
    ]
    return module["module_path"], tasks


def write_registry(registry: Path, release: Release, archive: Path, module: str) -> None:
    """The entry that publishing makes of .bcr/, with the archive where it is on this machine."""
    entry = registry / "modules" / NAME / release.version
    entry.mkdir(parents=True)
    (registry / "bazel_registry.json").write_text("{}\n", encoding="utf-8")
    (entry / "MODULE.bazel").write_text(module, encoding="utf-8")
    source = json.loads((ROOT / ".bcr" / "source.template.json").read_text(encoding="utf-8"))
    names = {"{REPO}": NAME, "{VERSION}": release.version, "{TAG}": f"v{release.version}"}
    for key, value in source.items():
        for name, text in names.items():
            value = value.replace(name, text)
        source[key] = value
    if not source["url"].endswith(f"/{release.file_name}"):
        raise SystemExit(
            f"source.template.json: url ends in no {release.file_name}: {source['url']}"
        )
    source |= {"url": archive.as_uri(), "integrity": integrity(archive.read_bytes())}
    (entry / "source.json").write_text(json.dumps(source, indent=2) + "\n", encoding="utf-8")


def from_registry(module: str, version: str) -> str:
    """A MODULE.bazel that takes rules_aoti from a registry in place of a folder."""
    text = _OVERRIDE.sub("", module)
    if text == module or _DEPENDENCY not in text:
        raise SystemExit(f"MODULE.bazel of the test module: no local_path_override of {NAME}")
    return text.replace(_DEPENDENCY, f'bazel_dep(name = "{NAME}", version = "{version}")')


def run_tasks(module: Path, tasks: list[Task], output_base: Path, flags: list[str]) -> None:
    """Runs the tasks' commands in the module."""
    bazel = [sys.executable, str(ROOT / "bazelw"), f"--output_base={output_base}"]
    try:
        for task in tasks:
            for command, *arguments in task.commands():
                if "--nobuild" in flags:
                    command = "build"  # tests can't be run without
                line = [*bazel, command, *flags, *arguments]
                print(f"presubmit: {task.name}: bazel {' '.join([command, *flags, *arguments])}")
                sys.stdout.flush()
                if code := subprocess.run(line, cwd=module, check=False).returncode:
                    raise SystemExit(f"presubmit: {task.name}: bazel {command}: exit code {code}")
    finally:
        subprocess.run([*bazel, "shutdown"], cwd=module, check=False, capture_output=True)


def simulate(release: Release, place: Path, flags: list[str]) -> None:
    """Everything, in a folder that is empty."""
    archive = place / release.file_name
    archive.write_bytes(release.archive)
    path, tasks = read_presubmit((ROOT / ".bcr" / "presubmit.yml").read_text(encoding="utf-8"))
    with tarfile.open(archive) as tar:
        tar.extractall(place / "unpacked", filter="data")
    unpacked = place / "unpacked" / release.prefix
    run_tasks(unpacked / path, tasks, place / "output", flags)

    registry = place / "registry"
    module = (unpacked / "MODULE.bazel").read_text(encoding="utf-8")
    write_registry(registry, release, archive, module)
    user = place / "user"
    shutil.copytree(unpacked / path, user)
    file = user / "MODULE.bazel"
    file.write_text(from_registry(file.read_text("utf-8"), release.version), encoding="utf-8")
    registries = [f"--registry={registry.as_uri()}", f"--registry={CENTRAL_REGISTRY}"]
    run_tasks(user, tasks, place / "user_output", [*registries, *flags])


def main() -> None:
    """Makes the release, and runs its presubmit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--place", type=Path, help="a folder that is not there yet")
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    parser.add_argument("--analyze", action="store_true", help="build nothing")
    parser.add_argument("--flag", action="append", default=[], help="of each of Bazel's commands")
    args = parser.parse_args()
    text = (ROOT / "MODULE.bazel").read_text(encoding="utf-8")
    version = re.findall(r'\bversion = "([^"]+)"', text)[0]
    release = make_release(ROOT, f"v{version}", args.commit, trial=True)
    if args.place:
        args.place.mkdir(parents=True)
    cache = Path.home() / ".cache"
    cache.mkdir(exist_ok=True)
    place = (
        args.place or Path(tempfile.mkdtemp(prefix="rules_aoti-presubmit-", dir=cache))
    ).resolve()
    try:
        flags = ["--lockfile_mode=off", "--symlink_prefix=/", *args.flag]
        simulate(release, place, [*flags, "--nobuild"] if args.analyze else flags)
    finally:
        if not args.keep:
            # Bazel leaves read-only folders behind.
            subprocess.run(["chmod", "-R", "u+w", str(place)], check=False, capture_output=True)
            shutil.rmtree(place, ignore_errors=True)
    print(f"presubmit: {release.file_name} passes; its integrity is {integrity(release.archive)}")


if __name__ == "__main__":
    main()
