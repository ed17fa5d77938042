"""The compiled runtime that a release brings: an archive for each CPU, and the file that names it.

`./bazelw build -c opt //runtime/prebuilt` makes the libraries on a machine of that CPU. Their bytes
depend on the source and on the compiler alone, and the archive's on theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

# As in runtime/prebuilt/cpus.bzl.
CPUS = ("aarch64", "x86_64")
LIBRARIES = ("libruntime.pic.a", "libslim.pic.a")
# The file of the source tree that names none.
ARCHIVES_BZL = "runtime/prebuilt/archives.bzl"

# Names that headers of newer systems bring into an object, and what has them.
_NEWER = {
    b"__isoc23_": "glibc has from 2.38 on",
    b"_ZSt21ios_base_library_initv": "libstdc++ has from GCC 13 on",
}

_TEXT = '''"""The compiled runtimes that this release has."""

# CPU, as in @platforms//cpu -> where the archive is ("url"), and its content ("integrity").
ARCHIVES = {archives}
'''


class RuntimeArchiveError(Exception):
    """The libraries can't be released; the message says why."""


def read_libraries(cpu: str, folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The libraries that a build has left in a folder, by name, as files of an archive."""
    if cpu not in CPUS:
        raise RuntimeArchiveError(
            f'--runtime: the CPU is "{cpu}"; expected {" or ".join(CPUS)}, as in x86_64=FOLDER'
        )
    files = {}
    for name in LIBRARIES:
        path = folder / name
        if not path.is_file():
            raise RuntimeArchiveError(
                f"--runtime={cpu}={folder}: no {name} in it; make it with "
                '"./bazelw build -c opt //runtime/prebuilt"; '
                "the folder is bazel-bin/runtime/prebuilt"
            )
        data = path.read_bytes()
        _check_names(path, data)
        files[name] = (data, False)
    return files


def _check_names(path: Path, data: bytes) -> None:
    """Programs of all systems with GCC 12 are linked with the libraries (aoti/cxx_library.h)."""
    for start, reason in _NEWER.items():
        at = data.find(start)
        if at >= 0:
            name = data[at : data.index(b"\0", at)].decode()
            raise RuntimeArchiveError(
                f"{path} calls {name}, which {reason}: compile the runtime with GCC 12 on a system "
                "with an older glibc, such as Debian 12"
            )


def archives_bzl(archives: Mapping[str, Mapping[str, str]]) -> str:
    """What ARCHIVES_BZL says in a release. archives: CPU to "integrity" and "url"."""
    # The two have one notation for dicts of strings, but for the last comma.
    lines = json.dumps(archives, indent=4, sort_keys=True)
    return _TEXT.format(archives=lines.replace('"\n', '",\n').replace("}\n", "},\n"))
