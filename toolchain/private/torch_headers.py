"""The headers of torch that generated programs and their runtime include.

usage: torch_headers.py --target=LABEL --version=VERSION --out=DIRECTORY --stable=DIRECTORY
           --pybind11=DIRECTORY [--site=DIRECTORY ...]

Actions run this program: it takes the headers, and pybind11's, which torch contains, from the first
site-packages folder that has torch.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from header_closure import header_closure
from header_patches import PATCHES, PatchError, patched

# The C ABI of AOTInductor and the headers that generated code includes; header_closure adds the
# headers that these include.
TORCH_HEADERS = (
    "torch/csrc/inductor/aoti_include/common.h",
    "torch/csrc/inductor/aoti_include/cpu.h",
    "torch/csrc/inductor/aoti_include/cuda.h",
    "torch/csrc/inductor/aoti_runtime/*.h",
    "torch/csrc/inductor/aoti_torch/c/*.h",
    "torch/csrc/inductor/aoti_torch/generated/*.h",
    "torch/csrc/inductor/cpp_prefix.h",
    "torch/csrc/stable/c/*.h",
)

# torch's source of the container's C API, which libraries for stock PyTorch compile.
CONTAINER = "torch/_inductor/codegen/aoti_runtime/interface.cpp"

# torch's stable C++ API on top of that ABI, for users' own operators.
STABLE_HEADERS = (
    "torch/csrc/stable/library.h",
    "torch/csrc/stable/ops.h",
    "torch/csrc/stable/tensor.h",
)


class TorchHeaders:
    """The headers below `torch/include`, wherever they are read from."""

    def __init__(self, include: Collection[str], read: Callable[[str], bytes]) -> None:
        self._include = include
        self._read = read
        self._own = header_closure(include, self._text, TORCH_HEADERS)

    def _text(self, header: str) -> str:
        return self._read(header).decode("utf-8", "replace")

    def write(self, folder: Path, container: bytes) -> None:
        """Writes the C ABI, with the changes for generated programs, and the container.

        Raises PatchError if torch is not the version that the changes are for.
        """
        for header in self._own:
            self._write(header, folder)
        write(folder / CONTAINER, container)

    def write_stable(self, folder: Path) -> None:
        """Writes the additional headers of torch's stable C++ API, changed in the same way."""
        for header in header_closure(self._include, self._text, STABLE_HEADERS):
            if header not in self._own:
                self._write(header, folder)

    def _write(self, header: str, folder: Path) -> None:
        content = self._read(header)
        if header in PATCHES:
            content = patched(header, self._text(header)).encode()
        write(folder / header, content)


def write(path: Path, content: bytes) -> None:
    """Writes a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _version(site: Path) -> str:
    text = (site / "torch" / "version.py").read_text(encoding="utf-8")
    match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return match[1] if match else "unknown"


def _files(folder: Path) -> list[str]:
    found = []
    for root, _, names in os.walk(folder, followlinks=True):
        found += [os.path.relpath(os.path.join(root, name), folder) for name in names]
    return sorted(found)


def _write_from(site: Path, out: Path, stable: Path, pybind11: Path) -> None:
    include = site / "torch" / "include"
    files = _files(include)
    headers = TorchHeaders(files, lambda header: (include / header).read_bytes())
    headers.write(out, (site / CONTAINER).read_bytes())
    headers.write_stable(stable)
    pybind11.mkdir(parents=True, exist_ok=True)
    for header in files:
        if header.startswith("pybind11/") and header.endswith(".h"):
            write(pybind11 / header, (include / header).read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, fromfile_prefix_chars="@")
    parser.add_argument("--target", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stable", type=Path, required=True)
    parser.add_argument("--pybind11", type=Path, required=True)
    parser.add_argument("--site", type=Path, action="append", default=[])
    args = parser.parse_args()
    site = next((s for s in args.site if (s / "torch" / "include").is_dir()), None)
    if site is None or not (site / CONTAINER).is_file():
        sys.exit(
            f"{args.target}: none of its packages has torch with torch/include and {CONTAINER}. "
            "Give the target that holds torch's own wheel, with its data files: @my_pip//torch."
        )
    found = _version(site)
    if args.version not in (found, found.partition("+")[0]):
        sys.exit(
            f'{args.target}: version is "{args.version}", but the torch of its packages is '
            f'{found}. Write version = "{found.partition("+")[0]}".'
        )
    try:
        _write_from(site, args.out, args.stable, args.pybind11)
    except PatchError as error:
        sys.exit(
            f"{args.target}: its torch is not the version that rules_aoti knows: {error}\n"
            "Give the version that torch.toolchain() has by default."
        )


if __name__ == "__main__":
    main()
