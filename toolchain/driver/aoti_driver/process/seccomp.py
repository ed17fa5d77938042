"""Linux's seccomp: a process restricts which system calls it and its children can make.

This needs no privilege, no user namespace and no package, so it works in containers too.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Mapping, Sequence

from aoti_driver.process import landlock

_PR_SET_SECCOMP = 22
_FILTER_MODE = 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # operations of classic BPF
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_EVERYONE = 0xFFFFFFFF  # -1
_X32 = 0x40000000  # x86-64 has a second set of numbers, beginning here

# Calls that reach the network, another process's memory, or another process's files.
# pidfd_send_signal is refused for all processes, because it accepts a folder of /proc, from which
# the filter can't tell the process.
REFUSED = {
    "x86_64": {
        "socket": 41,
        "connect": 42,
        "bind": 49,
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "pidfd_send_signal": 424,
        "io_uring_setup": 425,
        "pidfd_getfd": 438,
    },
    "aarch64": {
        "ptrace": 117,
        "socket": 198,
        "bind": 200,
        "connect": 203,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "pidfd_send_signal": 424,
        "io_uring_setup": 425,
        "pidfd_getfd": 438,
    },
}
# Signals, and other calls that act on the process that is the first argument.
TO_PROCESSES = {
    "x86_64": {
        "kill": 62,
        "rt_sigqueueinfo": 129,
        "tkill": 200,
        "sched_setaffinity": 203,
        "tgkill": 234,
        "rt_tgsigqueueinfo": 297,
        "prlimit64": 302,
        "pidfd_open": 434,
    },
    "aarch64": {
        "sched_setaffinity": 122,
        "kill": 129,
        "tkill": 130,
        "tgkill": 131,
        "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240,
        "prlimit64": 261,
        "pidfd_open": 434,
    },
}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict(protected: Sequence[int]) -> bool:
    """From now on: no sockets (except pairs), and no signals to or limits for the protected
    processes.

    Returns False if the kernel can't do it.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    code = program(machine, protected)
    landlock.no_new_privileges()
    prctl = ctypes.CDLL(None).prctl
    whole = ctypes.byref(_Program(len(code) // 8, code))
    return bool(prctl(_PR_SET_SECCOMP, _FILTER_MODE, whole, 0, 0) == 0)


def program(machine: str, protected: Sequence[int]) -> bytes:
    """The filter's instructions for a CPU."""
    return _filter(
        _ARCHITECTURES[machine],
        REFUSED[machine],
        TO_PROCESSES[machine],
        [*protected, _EVERYONE],
    )


def _filter(
    architecture: int,
    refused: Mapping[str, int],
    to_processes: Mapping[str, int],
    processes: Sequence[int],
) -> bytes:
    deny = _instruction(_RETURN, _ERRNO | errno.EACCES)
    no_such_call = _instruction(_RETURN, _ERRNO | errno.ENOSYS)
    allow = _instruction(_RETURN, _ALLOW)
    lines = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, architecture, when_true=1),
        no_such_call,
        _instruction(_LOAD, _NUMBER),
        _instruction(_AT_LEAST, _X32, when_false=1),
        no_such_call,
    ]
    for number in refused.values():
        lines += [_instruction(_EQUAL, number, when_false=1), deny]
    check = [_instruction(_LOAD, _FIRST_ARGUMENT)]
    for process in processes:
        check += [_instruction(_EQUAL, process, when_false=1), deny]
    check.append(allow)
    for number in to_processes.values():
        lines += [_instruction(_EQUAL, number, when_false=len(check)), *check]
    return b"".join([*lines, allow])


def _instruction(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)
