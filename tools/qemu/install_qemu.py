"""Fetches qemu-user from a Debian mirror, and the C library of the CPUs that it emulates.

The suite is one whose emulators are linked statically, so they run on any Linux.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from airgap.base import AirgapError
from debian_package.suite import Suite, extract

_SUITE = "trixie"
_EMULATORS = "qemu-user"

# CPU -> Debian's name for it, of those whose C library the machine has not got itself.
_FOREIGN = {"aarch64": "arm64"}

_SCRIPT = """\
#!/bin/sh
here=${{0%/*}}
exec "$here/bin/qemu-{cpu}"{options} "$@"
"""


def install(suite: Suite, cpu: str) -> None:
    """Writes bin/qemu-CPU, CPU.sh that runs it, and the CPU's C library."""
    if not extract(suite.deb(_EMULATORS), "usr/bin", Path("bin"), [f"qemu-{cpu}"]):
        raise AirgapError(f"Debian's {_EMULATORS} has no usr/bin/qemu-{cpu}")
    options = ""
    if cpu in _FOREIGN:
        libraries = Path("sysroot", cpu, "lib")
        if not extract(
            suite.deb(f"libc6-{_FOREIGN[cpu]}-cross"), f"usr/{cpu}-linux-gnu/lib", libraries
        ):
            raise AirgapError(f"Debian's C library for {cpu} is not where it is expected")
        options = f' -L "$here/sysroot/{cpu}"'
    Path(f"{cpu}.sh").write_text(_SCRIPT.format(cpu=cpu, options=options), encoding="utf-8")
    Path(f"{cpu}.sh").chmod(0o755)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="append", required=True, help="a CPU to emulate")
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(dir=".") as downloads:
            suite = Suite.load(_SUITE, Path(downloads))
            for cpu in args.cpu:
                install(suite, cpu)
    except AirgapError as error:
        sys.exit(f"qemu-user could not be fetched: {error}")


if __name__ == "__main__":
    main()
