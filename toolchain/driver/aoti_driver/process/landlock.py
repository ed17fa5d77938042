"""Linux's Landlock: a process restricts which files it and its children can open.

Uses system calls, which need no privilege and no package (Linux 5.13; the numbers are the same on
every CPU). See landlock(7).
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_FIRST = (1 << 13) - 1  # the rights of the first version
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets of other processes, signals to other processes

_LIBC = ctypes.CDLL(None)
_LIBC.syscall.restype = ctypes.c_long


def version() -> int:
    """The version of the kernel's Landlock; 0 if it has none."""
    return max(0, _call(_CREATE, None, 0, _VERSION_FLAG))


def restrict(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """From now on only these files and folders can be opened; returns False if the kernel can't do
    it.

    Links are resolved now. Paths that do not exist are left out.
    """
    known = version()
    if not known:
        return False
    handled = _FIRST
    handled |= _REFER if known >= 2 else 0
    handled |= _TRUNCATE if known >= 3 else 0
    attributes = struct.pack("=Q", handled)
    attributes += struct.pack("=Q", _TCP) if known >= 4 else b""
    attributes += struct.pack("=Q", _SCOPES) if known >= 6 else b""
    rules = _call(_CREATE, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        for paths, rights in ((readable, _READ), (writable, handled & ~_MAKE_DEVICES)):
            for path in dict.fromkeys(paths):
                _allow(rules, path, rights)
        no_new_privileges()
        return _call(_RESTRICT, rules, 0) == 0
    finally:
        os.close(rules)


def no_new_privileges() -> None:
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        _call(_ADD, rules, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def _call(number: int, *arguments: int | bytes | None) -> int:
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(_LIBC.syscall(ctypes.c_long(number), *passed))
