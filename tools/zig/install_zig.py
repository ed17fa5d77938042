"""Makes a C++ toolchain of PyPI's ziglang wheel, in the current folder: bin, include and lib.

`zig c++` itself is not what a build wants: it compiles its libraries when it is first called, into
a cache in the user's home, and refuses flags such as -march=armv8-a. So it is called once, here,
for its libraries; what the build calls is the clang and lld in it, told where those are.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pip_runner import run_pip

# Found whatever machine this is: the binary is static and runs on any x86-64 Linux.
_PIP_OPTIONS = ["--platform", "manylinux2010_x86_64"]

# Folder of the wheel -> folder of the toolchain. The order is that of the search.
_INCLUDES = {
    "libcxx/include": "cxx",
    "libcxxabi/include": "cxxabi",
    "include": "clang",
    "libc/include/{cpu}-linux-gnu": "{cpu}-linux-gnu",
    "libc/include/generic-glibc": "glibc",
    "libc/include/{cpu}-linux-any": "{cpu}-linux",
    "libc/include/any-linux-any": "linux",
}

# How zig compiles its libc++, which whoever includes its headers must say too.
_LIBCXX = """
-D_LIBCPP_ABI_VERSION=1 -D_LIBCPP_ABI_NAMESPACE=__1 -D_LIBCPP_HAS_THREADS=1
-D_LIBCPP_HAS_MONOTONIC_CLOCK -D_LIBCPP_HAS_TERMINAL -D_LIBCPP_HAS_MUSL_LIBC=0
-D_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS -D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS
-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0 -D_LIBCPP_HAS_FILESYSTEM=1
-D_LIBCPP_HAS_RANDOM_DEVICE -D_LIBCPP_HAS_LOCALIZATION -D_LIBCPP_HAS_UNICODE
-D_LIBCPP_HAS_WIDE_CHARACTERS -D_LIBCPP_HAS_NO_STD_MODULES -D_LIBCPP_HAS_TIME_ZONE_DATABASE
-D_LIBCPP_PSTL_BACKEND_SERIAL -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE
-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE
"""

# What zig links into a program, and the name under which a linker looks for it.
_LIBRARIES = {
    "Scrt1.o": "Scrt1.o",
    "libc++.a": "libc++.a",
    "libc++abi.a": "libc++abi.a",
    "libc.so.6": "libc.so",
    "libc_nonshared.a": "libc_nonshared.a",
    "libcompiler_rt.a": "libcompiler_rt.a",
    "libdl.so.2": "libdl.so",
    "libld.so.2": "libld.so",
    "libm.so.6": "libm.so",
    "libpthread.so.0": "libpthread.so",
    "librt.so.1": "librt.so",
    "libunwind.a": "libunwind.a",
}

_PROGRAM = """\
#include <iostream>
int main() { std::cout << "hello\\n"; }
"""

# Paths stay relative, as Bazel gives them: they are in the lists of headers that it checks.
_CC = """\
#!/bin/sh
# clang and lld for {cpu} Linux with glibc {glibc} or newer, and a libc++ that is linked statically.
bin=${{0%/*}}
include=$bin/../include
lib=$bin/../lib
link=yes
start=$lib/Scrt1.o
for argument; do
  case $argument in
    -c | -S | -E | -M | -MM | -fsyntax-only | --version | -v | -print-*) link= ;;
    -shared | -r) start= ;;
  esac
done
clang="clang --no-default-config --target={cpu}-linux-gnu -Wno-unused-command-line-argument"
if [ -n "$link" ]; then
  exec "$bin/zig" $clang -fuse-ld=lld "-B$bin" -nostdlib $start "$@" "-L$lib" -Wl,--as-needed \\
    -lc++ -lc++abi -lunwind -lm -lpthread -ldl -lrt -lc -lld -lc_nonshared -lcompiler_rt
fi
exec "$bin/zig" $clang -nostdinc -nostdinc++ {flags} "$@"
"""

_TOOL = """\
#!/bin/sh
exec "${{0%/*}}/zig" {command} "$@"
"""

_UNAVAILABLE = """\
#!/bin/sh
echo "the ziglang wheel has no such tool: use the machine's own, such as GNU nm or objdump" >&2
exit 1
"""


def _write_tool(name: str, text: str) -> None:
    path = Path("bin", name)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def unpack(wheel: Path, folder: Path) -> Path:
    """Unpacks the wheel; returns the folder with the binary."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    zig = folder / "ziglang"
    (zig / "zig").chmod(0o755)
    return zig


def build_libraries(zig: Path, cpu: str, glibc: str, scratch: Path) -> Path:
    """Has zig build the target's libraries; returns the folder that has them, somewhere."""
    source, cache = scratch / "hello.cc", scratch / "cache"
    source.write_text(_PROGRAM, encoding="utf-8")
    environment = {
        "HOME": str(scratch),
        "PATH": os.defpath,
        "ZIG_GLOBAL_CACHE_DIR": str(cache),
        "ZIG_LOCAL_CACHE_DIR": str(cache),
    }
    result = subprocess.run(
        [
            *(zig / "zig", "c++", "-target", f"{cpu}-linux-gnu.{glibc}"),
            *("-O2", "-s", "-fPIE", "-pie", source, "-ldl", "-lrt", "-lpthread"),
            *("-o", scratch / "hello"),
        ],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.exit(f"zig could not build the libraries for {cpu}:\n{result.stdout}")
    return cache


def take_libraries(cache: Path, lib: Path) -> None:
    """Copies what a program is linked with out of zig's cache."""
    lib.mkdir()
    for name, as_name in _LIBRARIES.items():
        found = sorted(cache.rglob(name))
        if len(found) != 1:
            sys.exit(f"zig's cache has {len(found)} files called {name}, expected one")
        shutil.copyfile(found[0], lib / as_name)
    # For `-lstdc++`, which people write who link it statically with gcc.
    (lib / "libstdc++.a").write_text("INPUT(-lc++ -lc++abi -lunwind)\n", encoding="utf-8")


def take_headers(zig: Path, cpu: str, include: Path) -> list[str]:
    """Copies the headers; returns the folders in the order of the search."""
    folders = []
    for source, target in _INCLUDES.items():
        folders.append(target.format(cpu=cpu))
        shutil.copytree(zig / "lib" / source.format(cpu=cpu), include / folders[-1])
    return folders


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requirement", required=True, help="the wheel, with its hash")
    parser.add_argument("--cpu", required=True)
    parser.add_argument("--glibc", required=True, help="the oldest version to run with")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as temporary:
        scratch = Path(temporary).absolute()
        trouble = run_pip(["download", "--dest", str(scratch), *_PIP_OPTIONS], [args.requirement])
        if trouble is not None:
            sys.exit(f"pip could not download {args.requirement}:\n{trouble}")
        (wheel,) = scratch.glob("*.whl")
        zig = unpack(wheel, scratch)
        wheel.unlink()
        take_libraries(build_libraries(zig, args.cpu, args.glibc, scratch), Path("lib"))
        folders = take_headers(zig, args.cpu, Path("include"))
        Path("bin").mkdir()
        (zig / "zig").rename("bin/zig")
    search = "".join(f' -isystem "$include/{folder}"' for folder in folders)
    flags = f"-D__GLIBC_MINOR__={args.glibc.split('.')[1]} {' '.join(_LIBCXX.split())}{search}"
    _write_tool("cc", _CC.format(cpu=args.cpu, glibc=args.glibc, flags=flags))
    _write_tool("ar", _TOOL.format(command="ar"))
    _write_tool("ld.lld", _TOOL.format(command="ld.lld"))
    _write_tool("objcopy", _TOOL.format(command="objcopy"))
    _write_tool("strip", _TOOL.format(command="objcopy --strip-all"))
    _write_tool("unavailable", _UNAVAILABLE)


if __name__ == "__main__":
    main()
