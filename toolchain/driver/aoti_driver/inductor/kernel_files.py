"""Divides a program's kernels into C++ files.

Files are compiled in parallel, and only if their text has changed. But each one also compiles
torch's headers, which takes longer than dozens of ordinary kernels. So these share files, with a
fixed number in each; a template (a whole matrix product) takes seconds and gets its own file. The
file of a kernel depends on the number of kernels before it, not on their content: changing one
kernel moves no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KERNELS_PER_FILE = 16

# Inductor begins each kernel with this line, and the headers of a template also with the other one.
_BEGIN = "#include <torch/csrc/inductor/cpp_prefix.h>\n"
_TEMPLATE = re.compile(r"^\s*#include <c10/util/Unroll\.h>", re.MULTILINE)


def split(text: str) -> Mapping[str, str]:
    """The files' texts by name; there is always one, which is empty if the program has no
    kernel.
    """
    before, *kernels = text.split(_BEGIN)
    if before.strip():
        raise AssertionError(f"Inductor wrote something before its first kernel: {before[:200]!r}")
    loops: list[str] = []
    templates: list[str] = []
    for kernel in kernels:
        (templates if _TEMPLATE.search(kernel) else loops).append(kernel.strip())
    files = {}
    for number, at in enumerate(range(0, max(len(loops), 1), KERNELS_PER_FILE)):
        files[f"kernels_{number}.cpp"] = "\n\n".join(loops[at : at + KERNELS_PER_FILE])
    for number, template in enumerate(templates):
        files[f"template_{number}.cpp"] = template
    return files
