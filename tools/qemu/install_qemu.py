"""Fetches qemu-user from a Debian mirror, and the C library of the CPUs that it emulates.

The signed index says which version there is and what its hash is: a mirror keeps only the newest.
The suite is one whose emulators are linked statically, so they run on any Linux.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from airgap.base import AirgapError
from airgap.deb import data_tar
from airgap.debian import Package, load_index, mirror
from airgap.fetch import Fetcher

SUITE = "trixie"
_EMULATORS = "qemu-user"

# CPU -> Debian's name for it, of those whose C library the machine has not got itself.
_FOREIGN = {"aarch64": "arm64"}

_SCRIPT = """\
#!/bin/sh
here=${{0%/*}}
exec "$here/bin/qemu-{cpu}"{options} "$@"
"""


def package(index: Mapping[str, Package], name: str) -> Package:
    if name not in index:
        raise AirgapError(f"Debian {SUITE} has no package {name}: another suite is needed")
    return index[name]


def extract(deb: Path, prefix: str, target: Path, keep: Sequence[str] = ()) -> list[str]:
    """Unpacks what lies below `prefix`, flat; only the names in `keep`, if there are any."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data_tar(deb))) as tar:
        for member in tar:
            folder, _, name = member.name.removeprefix("./").rpartition("/")
            if folder != prefix or (keep and name not in keep):
                continue
            content = tar.extractfile(member) if member.isfile() or member.issym() else None
            if content is None:
                continue
            target.mkdir(parents=True, exist_ok=True)
            with content, (target / name).open("wb") as out:
                shutil.copyfileobj(content, out)
            (target / name).chmod(0o755)
            found.append(name)
    return found


def install(fetcher: Fetcher, index: Mapping[str, Package], base: str, cpu: str) -> None:
    """Writes bin/qemu-CPU, CPU.sh that runs it, and the CPU's C library."""

    def fetched(name: str) -> Path:
        wanted = package(index, name)
        return fetcher.file(f"{base}/{wanted.filename}", wanted.sha256, wanted.size)

    if not extract(fetched(_EMULATORS), "usr/bin", Path("bin"), [f"qemu-{cpu}"]):
        raise AirgapError(f"Debian's {_EMULATORS} has no usr/bin/qemu-{cpu}")
    options = ""
    if cpu in _FOREIGN:
        libraries = Path("sysroot", cpu, "lib")
        if not extract(
            fetched(f"libc6-{_FOREIGN[cpu]}-cross"), f"usr/{cpu}-linux-gnu/lib", libraries
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
        base = mirror()
        with tempfile.TemporaryDirectory(dir=".") as downloads:
            fetcher = Fetcher(Path(downloads))
            index = load_index(fetcher, base, SUITE)
            for cpu in args.cpu:
                install(fetcher, index, base, cpu)
    except AirgapError as error:
        sys.exit(f"qemu-user could not be fetched: {error}")


if __name__ == "__main__":
    main()
