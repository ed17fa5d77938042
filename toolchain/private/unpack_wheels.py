"""Unpacks wheels into a site-packages folder, in an action.

usage: unpack_wheels.py --out=DIRECTORY [--exclude=PATTERN ...] [--check_import=MODULE] WHEEL ...
       unpack_wheels.py --member=PATH=FILE ... WHEEL ...

The result depends only on the wheels: the same bytes every time, and no absolute path. The second
form extracts single files, which are named by their paths below site-packages.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from bytecode import compile_tree
from wheels import WheelError, contents, installed_path


def unpack(wheels: Sequence[Path], site: Path, excluded: Sequence[str] = ()) -> None:
    """Unpacks all files of the wheels, except those that match a pattern (`*` matches `/` too)."""
    site.mkdir(parents=True, exist_ok=True)
    for path in sorted(wheels, key=lambda wheel: wheel.name):
        with zipfile.ZipFile(path) as wheel:
            for name, info in contents(wheel):
                if not any(fnmatchcase(name, pattern) for pattern in excluded):
                    _extract(wheel, info, site / name)
    for record in sorted(site.glob("*.dist-info/RECORD")):
        _write_record(record, site)


def _extract(wheel: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> None:
    # Programs are kept, but scripts are left out, because they name an interpreter by its absolute
    # path.
    if _is_script(wheel, info):
        return
    with wheel.open(info) as source:
        _copy(source, target)
    if (info.external_attr >> 16) & 0o111:
        target.chmod(0o755)


def _is_script(wheel: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    folder, _, rest = info.filename.partition("/")
    if not (folder.endswith(".data") and rest.startswith("scripts/")):
        return False
    with wheel.open(info) as source:
        return source.read(2) == b"#!"


def _copy(source: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _write_record(record: Path, site: Path) -> None:
    """Rewrites the list of a package's files to the files that exist and their places."""
    with record.open(encoding="utf-8", newline="") as file:
        rows = [[installed_path(path), *rest] for path, *rest in csv.reader(file)]
    with record.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(sorted(row for row in rows if (site / row[0]).exists()))


def extract_members(wheels: Sequence[Path], members: dict[str, Path]) -> None:
    """Extracts single files. `members` maps paths below site-packages to the files to write."""
    missing = dict(members)
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            for name, info in contents(wheel):
                if (target := missing.pop(name, None)) is not None:
                    with wheel.open(info) as source:
                        _copy(source, target)
    if missing:
        raise WheelError(f"no wheel has {', '.join(sorted(missing))}")


def check_import(module: str, site: Path) -> None:
    """Checks that the unpacked packages fit together."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); __import__(sys.argv[2])"
    command = [sys.executable, "-I", "-S", "-B", "-c", program, str(site.absolute()), module]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        last = "\n".join(result.stderr.strip().splitlines()[-3:])
        sys.exit(
            f"the locked {module} was unpacked but can't be imported:\n{last}\n"
            "If a CUDA library is missing: pip took a CUDA build of torch, and the lock has none\n"
            "of its libraries (nvidia-*). Let pip find the CPU build (PIP_EXTRA_INDEX_URL), or\n"
            "add the libraries to the lock: see docs/toolchain.md of rules_aoti."
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, fromfile_prefix_chars="@"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--check_import")
    parser.add_argument("--member", action="append", default=[])
    parser.add_argument("wheels", type=Path, nargs="*")
    args = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        sys.exit("unpack_wheels.py needs PYTHONHASHSEED=0: the order of sets ends up in bytecode")
    try:
        if args.member:
            members = dict(member.rsplit("=", 1) for member in args.member)
            extract_members(args.wheels, {name: Path(file) for name, file in members.items()})
            return
        unpack(args.wheels, args.out, args.exclude)
    except WheelError as error:
        sys.exit(str(error))
    compile_tree(args.out)
    if args.check_import:
        check_import(args.check_import, args.out)


if __name__ == "__main__":
    main()
