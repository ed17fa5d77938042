"""Tries rules_aoti with other versions of rules_python and rules_cc, and newer Bazel's defaults.

usage: python3 tools/compatibility/try_rulesets.py [--rules_python=V] [--rules_cc=V]
           [--registry=URL] [--folder=DIR] [--analysis_only] [-- BAZEL_OPTION ...]

A copy of the workspace is made that asks for these versions, by default the newest of the registry.
There everything is analysed (`bazel build --nobuild //...`), and the smoke module is built and
passes its tests. Bazel 7 runs with the flags of newer_bazel.bazelrc. What comes out is a row for
the table in docs/compatibility.md.

`--registry` is Bazel's: the Central Registry by default, or a folder's file:// URL where that is
out of reach. Bazel is the command that BAZEL names, or `bazel`; bazelw won't do where it sets Bazel
up itself, as its registry serves Debian's rulesets under all versions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FLAGS = Path(__file__).resolve().with_name("newer_bazel.bazelrc")
CENTRAL_REGISTRY = "https://bcr.bazel.build"
RULESETS = ("rules_cc", "rules_python")
MODULES = (".", "tests/e2e/smoke")


def newest(registry: str, module: str) -> str:
    """The newest release of a module in a registry that was not yanked."""
    with urllib.request.urlopen(f"{registry}/modules/{module}/metadata.json", timeout=60) as answer:
        listing: dict[str, Any] = json.load(answer)
    yanked: dict[str, str] = listing.get("yanked_versions", {})
    releases: list[str] = [v for v in listing["versions"] if v not in yanked and "-" not in v]
    if not releases:
        sys.exit(f"{registry} has no release of {module}")
    return max(releases, key=lambda v: [int(n) for n in re.findall(r"\d+", v)])


def with_versions(text: str, versions: Mapping[str, str]) -> str:
    """The text of a MODULE.bazel that asks for these versions of what it depends on."""
    for module, version in versions.items():
        pattern = rf'(bazel_dep\(name = "{module}", version = ")[^"]*"'
        text = re.sub(pattern, rf'\g<1>{version}"', text)
    return text


def copy_workspace(target: Path, versions: Mapping[str, str]) -> None:
    """Copies what git tracks or would track, and changes the versions."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    for module in MODULES:
        file = target / module / "MODULE.bazel"
        file.write_text(with_versions(file.read_text(encoding="utf-8"), versions), encoding="utf-8")


def bazel_version(bazel: str) -> str:
    answer = subprocess.run([bazel, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.split()[-1]


def commands(
    bazel: str, version: str, registry: str, options: Sequence[str], analysis_only: bool
) -> list[tuple[str, str, list[str]]]:
    """What to run: a name for the table, the module's folder, the command."""
    startup = [f"--bazelrc={FLAGS}"] if version.startswith("7.") else []
    common = [f"--registry={registry}", "--lockfile_mode=off", *options]
    found = [
        (
            "analysis of //...",
            ".",
            [bazel, *startup, "build", "--nobuild", "--keep_going", *common, "//..."],
        )
    ]
    if not analysis_only:
        smoke = [bazel, *startup, "test", *common, "//..."]
        found.append(("tests/e2e/smoke", "tests/e2e/smoke", smoke))
    return found


def run(command: Sequence[str], folder: Path, keep: bool) -> int:
    """Runs Bazel in a folder and ends its server; unless `keep`, its outputs are removed too."""
    code = subprocess.run(command, cwd=folder, check=False).returncode
    ending = ["shutdown"] if keep else ["clean", "--expunge"]
    subprocess.run([command[0], *ending], cwd=folder, check=False, capture_output=True)
    return code


def row(version: str, versions: Mapping[str, str], codes: Mapping[str, int]) -> str:
    """The line for the table, from the exit codes."""
    defaults = " with newer Bazels' defaults" if version.startswith("7.") else ""
    passed = "; ".join(f"{name}: {'failed' if code else 'passes'}" for name, code in codes.items())
    rulesets = f"{versions['rules_python']} | {versions['rules_cc']}"
    return f"| {version}{defaults} | {rulesets} | {passed} |"


def main() -> None:
    """Runs all, prints a row, and fails if one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for ruleset in RULESETS:
        parser.add_argument(f"--{ruleset}", metavar="VERSION", help="default: the newest")
    parser.add_argument("--registry", default=CENTRAL_REGISTRY)
    parser.add_argument(
        "--folder", type=Path, help="for the copy; kept, and the outputs. Not below /tmp."
    )
    parser.add_argument("--analysis_only", action="store_true")
    parser.add_argument("options", nargs="*", metavar="BAZEL_OPTION")
    args = parser.parse_args()

    registry = args.registry.rstrip("/")
    versions = {name: getattr(args, name) or newest(registry, name) for name in RULESETS}
    bazel = os.environ.get("BAZEL", "bazel")
    version = bazel_version(bazel)
    # Bazel's sandbox has a /tmp of its own: what lies there does not build.
    place = args.folder or Path(tempfile.mkdtemp(prefix="try_rulesets.", dir=ROOT.parent))
    copy_workspace(place, versions)
    results = {}
    for name, folder, command in commands(
        bazel, version, registry, args.options, args.analysis_only
    ):
        print(f"{name}: {' '.join(command)}", file=sys.stderr, flush=True)
        results[name] = run(command, place / folder, keep=bool(args.folder))
    print(row(version, versions, results))
    if not args.folder:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(any(results.values()))


if __name__ == "__main__":
    main()
