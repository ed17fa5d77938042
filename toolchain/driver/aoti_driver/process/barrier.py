"""The barrier around a step, which reaches only its inputs, the interpreter, packages and system
libraries.

A model is a program that somebody else wrote, and Bazel's own sandbox is usually not around a
worker. So the process that runs a step gives up access to all other files, the network and other
processes before it runs the model's code. If the kernel can't restrict one of these, the process
says which.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from aoti_driver.process import landlock, seccomp

MODES = ("auto", "required", "off")

# Files of the machine: what programs consist of, and information about the CPU and the process
# itself.
_SYSTEM = (
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sbin",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/sbin",
    "/usr/share",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/gnu/store",
    "/nix/store",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
)
_WRITABLE = ("/dev/null", "/dev/shm", "/dev/full")

# Descriptions of what can't be restricted.
_NO_LANDLOCK = "files (the kernel has no Landlock, which is in Linux 5.13 and newer)"
_LANDLOCK_REFUSED = "files (the kernel refuses Landlock here)"
_NETWORK = "the network (the kernel refuses seccomp and user namespaces here)"
HOLES = (_NO_LANDLOCK, _LANDLOCK_REFUSED, _NETWORK)

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def raise_around(
    readable: Iterable[str], writable: Iterable[str], protected: Sequence[int]
) -> list[str]:
    """Raises the barrier around this process permanently; returns the entries of HOLES that it
    can't restrict.

    protected: processes to which this one can't send signals.
    """
    holes = []
    if not landlock.restrict([*_SYSTEM, *readable], [*_WRITABLE, *writable]):
        holes.append(_LANDLOCK_REFUSED if landlock.version() else _NO_LANDLOCK)
    if not seccomp.restrict(protected) and not _own_network():
        holes.append(_NETWORK)
    return holes


def _own_network() -> bool:
    unshare = ctypes.CDLL(None).unshare
    return any(unshare(flags) == 0 for flags in (_CLONE_NEWUSER | _CLONE_NEWNET, _CLONE_NEWNET))


def interpreter() -> Iterator[str]:
    """The interpreter, its library, the packages and the driver, as paths."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    for prefix in sorted(prefixes):
        yield os.path.join(prefix, "bin")
        for name in ("lib", "lib64"):
            yield from tree(os.path.join(prefix, name))
    yield sys.executable
    for path in sys.path:
        yield from tree(path)


def tree(path: str) -> Iterator[str]:
    """The path of a file or folder, and its real path.

    Bazel's sandbox makes folders of its own, in which each file is a link to the real file.
    """
    yield path
    if os.path.isdir(path) and (link := _first_link(path)):
        real, inner = os.path.realpath(link), os.path.relpath(link, path)
        yield (
            real.removesuffix(f"/{inner}") if real.endswith(f"/{inner}") else os.path.dirname(real)
        )


def _first_link(folder: str) -> str | None:
    for root, _, files in os.walk(folder):
        for name in sorted(files):
            path = os.path.join(root, name)
            return path if os.path.islink(path) else None
    return None
